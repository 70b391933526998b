"""The handlers of SQS actions. A handler reads the state and returns a result and mutations; it changes nothing."""
