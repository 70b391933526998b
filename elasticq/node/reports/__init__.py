"""Reports for operators: status, background work and cluster events."""
