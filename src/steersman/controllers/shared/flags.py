"""Flags that several controllers read."""

from __future__ import annotations

from steersman.intent.settings import Flag

ROOT_CA_FILE = Flag("root-ca-file", "", "The CA bundle for service account tokens and every namespace.")
CLUSTER_NAME = Flag("cluster-name", "kubernetes", "The name of this cluster in the cloud.")
CLUSTER_CIDR = Flag("cluster-cidr", "", "The CIDR of pods, or two of different IP families.")
ALLOCATE_NODE_CIDRS = Flag("allocate-node-cidrs", False, "Assign each node a CIDR for its pods.")
NODE_MONITOR_PERIOD = Flag("node-monitor-period", 5.0, "The time between two looks at the state of nodes.")
