"""The nouns of the service: commands, results, errors, names and limits."""
