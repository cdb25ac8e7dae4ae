"""Scenarios: stories of a cluster, one file each. `steersman.testing.explore.scenario` reads them."""
