"""Engine and replication joined: one member of a cluster as a pure state machine."""
