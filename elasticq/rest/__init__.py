"""The REST API of the SQS port, /api/v1: a translation of paths and JSON into the commands that SQS uses.

The API has no engine of its own: a request becomes commands, and their results become JSON. The table of routes is
also the source of the OpenAPI document and of its page.
"""
