"""The pure rules of queues and topics: a command and the state yield a result and mutations.

Only ``apply`` writes the state.
"""
