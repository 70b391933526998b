"""Raft for one cluster: terms, votes, log, election and commit of opaque entries, without I/O."""
