"""Which message goes next: one ordering policy object per queue."""
