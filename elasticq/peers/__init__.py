"""The network of the members: links that carry frames, discovery, and snapshot transfers, all over TCP.

It does not decide who is a member of the cluster.
"""
