"""Scenarios: stories of a cluster, one file each. `steersman.explore.scenario` reads them."""
