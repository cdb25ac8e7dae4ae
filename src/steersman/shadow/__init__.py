"""Shadow: decides beside another controller manager, writes nothing, and compares.

`intention` and `comparison` are pure: what our controllers would write, and whether the cluster shows it in time. `shell` drives
decisions with writes that are imagined. `shadow` runs it all over the informers of a cluster, and `report` shows the result.
"""
