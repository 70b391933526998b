"""A seeded world: whole clusters with network, disks, clocks and clients in one process (no asyncio)."""
