"""The filter policies of subscriptions: parsing, indexing, and matching against messages."""
