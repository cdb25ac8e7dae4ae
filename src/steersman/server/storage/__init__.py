"""Revisioned objects in memory, watches of them, and the data directory that keeps them."""
