"""The waits of calls: one module for each reason why a call waits."""
