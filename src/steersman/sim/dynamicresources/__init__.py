"""Dynamic resource allocation (DRA) in simulated clusters: devices of nodes, and which of them ResourceClaims get.

- `driver`: a simulated driver, which publishes ResourceSlices with the devices of simulated nodes;
- `selectors`: CEL selectors on devices;
- `allocator`: the devices for the claims of a pod on one node, as pure functions.

The scheduler's part is `steersman.sim.scheduler.dynamic_resources`, that of the kubelets `steersman.sim.kubelet.claim_preparation`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import field

DRIVER = "sim.steersman.dev"
"""The name of the simulated driver."""
DEVICE_CLASS = "simulated"
"""The DeviceClass of all its devices."""
MAX_DEVICES = 128
"""Devices of a ResourceSlice, as the API limits them."""
COUNT = "sim.steersman.dev/devices"
"""An annotation of a Node: the number of its devices."""
UNHEALTHY = "sim.steersman.dev/unhealthy-devices"
"""An annotation of a Node: names of its unhealthy devices; also the key of their taint."""


class Devices(msgspec.Struct, frozen=True):
    """The simulated devices of each node: ``device-0``, ``device-1`` and so on.

    Each has the attributes ``index`` and ``numa`` (two devices share a NUMA node), besides those given here.
    """

    count: int = 4
    attributes: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Attributes of all devices."""
    capacity: Mapping[str, str] = field(default_factory=lambda: {"memory": "16Gi"})
