"""The members of a cluster: how they meet, found the cluster and change its voters."""
