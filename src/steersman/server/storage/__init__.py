"""Storage: the revisioned in-memory store, its watches, computed resources, and the data directory."""
