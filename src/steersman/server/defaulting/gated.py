"""Defaults of the kinds that feature gates add: PodGroups and ResourcePoolStatusRequests."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated.resource_v1alpha3 import ResourcePoolStatusRequest
from steersman.api.generated.scheduling_v1alpha2 import PodGroup
from steersman.server.defaulting.missing_fields import Default, GroupKind, default_if_none, put

POOL_LIMIT = 100
"""The number of pools that a ResourcePoolStatusRequest is answered with."""


def default_pod_group(obj: PodGroup) -> PodGroup:
    return put(obj, spec=default_if_none(obj.spec, disruptionMode="Pod"))


def default_resource_pool_status_request(obj: ResourcePoolStatusRequest) -> ResourcePoolStatusRequest:
    return put(obj, spec=default_if_none(obj.spec, limit=POOL_LIMIT))


DEFAULTS: Mapping[GroupKind, Default] = {
    ("resource.k8s.io", "ResourcePoolStatusRequest"): default_resource_pool_status_request,
    ("scheduling.k8s.io", "PodGroup"): default_pod_group,
}
