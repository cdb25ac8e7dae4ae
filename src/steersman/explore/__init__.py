"""The explorer: runs scenarios under injected faults and compares their end states with a run without faults."""
