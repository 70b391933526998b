"""The order of messages: one object for each queue decides which message goes next."""
