"""SNS topics: the actions of the API, the fan-out of publishes, and their delivery in steps."""
