"""The admission of requests: who calls, whether the signature is valid, and what is logged."""
