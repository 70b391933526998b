"""The asyncio side of a Node: it brings calls, frames and time to the node and carries out its effects."""
