"""The data types of the service: commands, results, errors, names and limits."""
