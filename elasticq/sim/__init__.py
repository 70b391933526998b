"""Simulates whole clusters from a seed, with network, disks, clocks and clients, in one process without asyncio."""
