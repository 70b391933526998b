"""One member of a cluster, or one proxy, without I/O: calls, frames and time go in, effects come out."""
