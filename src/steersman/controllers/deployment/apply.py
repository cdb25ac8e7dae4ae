"""Making ReplicaSets what they should be: one request each, and an event where the size changes."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.errors import ApiError
from steersman.api.kinds import Deployment, ReplicaSet
from steersman.controllers.deployment.replicasets import Family, size
from steersman.intent.actions import Batch, Done, Emit, Failed, Patch


class Written(msgspec.Struct, frozen=True):
    """What became of a family's wishes."""

    family: Family
    """The family as the server has it now."""
    done: tuple[str, ...] = ()
    """What was changed, in words."""
    failure: ApiError | None = None
    """Why something could not be changed."""


def patch(before: ReplicaSet, after: ReplicaSet) -> Patch[ReplicaSet]:
    """The fields that differ. The resourceVersion makes it miss a set that somebody else changed."""
    metadata: dict[str, Any] = {"resourceVersion": before.metadata.resourceVersion}
    spec: dict[str, Any] = {}
    had = before.metadata.annotations
    annotations = {
        name: value for name, value in after.metadata.annotations.items() if had.get(name) != value
    }
    if annotations:
        metadata["annotations"] = annotations
    if size(before) != size(after):
        spec["replicas"] = size(after)
    if before.spec.minReadySeconds != after.spec.minReadySeconds:
        spec["minReadySeconds"] = after.spec.minReadySeconds
    body: dict[str, Any] = {"metadata": metadata}
    if spec:
        body["spec"] = spec
    return Patch(before, body)


async def carry_out(before: Family, after: Family) -> Written:
    """Write what differs between two states of a family: what shrinks first, then what grows.

    In that order the sum never passes what it should, even if we die in between. Nothing grows when
    something could not be made smaller for it.
    """
    wishes = [(old, new) for old, new in zip(before, after, strict=True) if old is not new]
    fewer = [(old, new) for old, new in wishes if size(new) <= size(old)]
    more = [(old, new) for old, new in wishes if size(new) > size(old)]
    written = await _write(before, fewer)
    if written.failure is not None or not more:
        return written
    rest = await _write(written.family, more)
    return Written(rest.family, (*written.done, *rest.done), rest.failure)


async def _write(family: Family, wishes: list[tuple[ReplicaSet, ReplicaSet]]) -> Written:
    """Write some of a family at once; one that fails does not keep the others back."""
    if not wishes:
        return Written(family)
    outcomes = await Batch(tuple(patch(old, new) for old, new in wishes), slow_start=False)
    now: dict[str, ReplicaSet] = {}
    done: list[str] = []
    failure: ApiError | None = None
    for (old, new), outcome in zip(wishes, outcomes, strict=True):
        match outcome:
            case Done(value) if value.metadata.resourceVersion == old.metadata.resourceVersion:
                pass  # the server undid it (an admission webhook may), so no change will show
            case Done(value):
                now[old.metadata.name] = value
                done.append(f"{old.metadata.name} {_difference(old, new)}")
                if size(old) != size(new):
                    await scaled(family.deployment, old.metadata.name, size(old), size(new))
            case Failed(error):
                failure = failure or error
            case _:
                pass
    return Written(family.having(now), tuple(done), failure)


async def scaled(deployment: Deployment, name: str, was: int, now: int) -> None:
    """Tell that a ReplicaSet was given another size."""
    way = "up" if was < now else "down"
    await Emit(
        deployment,
        "Normal",
        "ScalingReplicaSet",
        f"Scaled {way} replica set {name} from {was} to {now}",
    )


def _difference(old: ReplicaSet, new: ReplicaSet) -> str:
    return f"from {size(old)} to {size(new)}" if size(old) != size(new) else "annotations"
