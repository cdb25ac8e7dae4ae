"""Every controller there is, in the order they start. One file each; the list is explicit."""

from __future__ import annotations

from typing import Any

from steersman.controllers import deployment, replicaset, serviceaccount, ttlafterfinished
from steersman.intent.controller import Controller

CONTROLLERS: tuple[Controller[Any], ...] = (
    serviceaccount.controller,
    deployment.controller,
    replicaset.replicaset,
    replicaset.replicationcontroller,
    ttlafterfinished.controller,
)
