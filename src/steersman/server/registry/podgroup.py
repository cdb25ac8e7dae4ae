"""The PodGroup strategy: drops the fields of feature gates that are off."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from steersman.server.registry.strategy import WriteContext, update_status_only

if TYPE_CHECKING:
    from steersman.api.generated.scheduling_v1alpha2 import PodGroup

_FIELDS: Mapping[str, Mapping[str, object]] = {
    "DRAWorkloadResourceClaims": {"resourceClaims": ()},
    "TopologyAwareWorkloadScheduling": {"schedulingConstraints": None},
    # Upstream drops the mode, too, and a reader gets its default again.
    "WorkloadAwarePreemption": {"disruptionMode": "Pod", "priority": None, "priorityClassName": ""},
}
"""By feature gate: the fields of the spec that need it, and their values without it."""
_update_status = update_status_only(("labels", "annotations", "finalizers", "ownerReferences"))


def strategy(gates: frozenset[str]) -> Mapping[str, Any]:
    """The parts of the strategy that depend on feature gates."""
    absent = {
        name: value for gate, fields in _FIELDS.items() if gate not in gates for name, value in fields.items()
    }
    return {
        "prepare_for_create": partial(_prepare_for_create, absent),
        "prepare_for_update": partial(_prepare_for_update, absent),
        "prepare_for_status_update": partial(_prepare_for_status_update, "resourceClaims" in absent),
    }


def _prepare_for_create(absent: Mapping[str, object], obj: PodGroup, context: WriteContext) -> PodGroup:
    return replace(obj, spec=replace(obj.spec, **absent), status=type(obj.status)())


def _prepare_for_update(
    absent: Mapping[str, object], new: PodGroup, old: PodGroup, context: WriteContext
) -> PodGroup:
    """Keeps the status. A field that the old object uses is not dropped: whether it may change is validated."""
    unused = {
        name: value
        for name, value in absent.items()
        # The mode always has its default, so that it is always in use.
        if name != "disruptionMode" and getattr(old.spec, name) == value
    }
    return replace(new, spec=replace(new.spec, **unused), status=old.status)


def _prepare_for_status_update(
    without_claims: bool, new: PodGroup, old: PodGroup, context: WriteContext
) -> PodGroup:
    if without_claims and not old.spec.resourceClaims:
        new = replace(new, status=replace(new.status, resourceClaimStatuses=()))
    updated: PodGroup = _update_status(new, old, context)
    return updated
