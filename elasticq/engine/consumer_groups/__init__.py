"""Consumer groups: sessions of consumers, assignments of resources, and the fence against former holders."""
