"""The simulation of whole clusters from a seed: network, disks, clocks and clients in one process, without asyncio."""
