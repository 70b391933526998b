"""Talks to a server from the outside: the light client, from the standard library alone."""
