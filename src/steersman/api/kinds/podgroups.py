"""Views of PodGroups, the pods that are scheduled together. The server has them behind the feature gate
GenericWorkload."""

from __future__ import annotations

from steersman.api.kinds import Object, PodResourceClaim, PodResourceClaimStatus, Struct
from steersman.api.scheme import Kind, register


class PodGroupSpec(Struct, frozen=True):
    resourceClaims: tuple[PodResourceClaim, ...] = ()
    """A pod of the group that has the same claim in its spec shares the claim with the group."""


class PodGroupStatus(Struct, frozen=True):
    resourceClaimStatuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(Object, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


PODGROUPS = register(Kind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups", True, PodGroup))
