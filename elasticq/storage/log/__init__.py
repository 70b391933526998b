"""The durable log: segment files, their records and the space reserved for them."""
