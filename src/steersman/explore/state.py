"""Where a cluster has got to, in a form that two runs can be compared by.

Only what differs from how the cluster began counts. Gone is what chance and time decide: names, uids, times,
which node a pod is on, what a kubelet reports, heartbeats and events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from steersman.explore.matching import short
from steersman.explore.normalize import normalise
from steersman.server.codec.convert import document
from steersman.server.server import Server

State: TypeAlias = dict[str, Any]
Snapshot: TypeAlias = dict[str, dict[str, Any]]

ASIDE = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Told, or renewed for ever: no part of a state."""
WORKED_OUT = ".metrics.k8s.io"
"""What is measured at the moment it is read."""
SETS = frozenset({"ReplicaSet", "ReplicationController"})
SIZES = ("deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas")


def snapshot(server: Server) -> Snapshot:
    """What is there now, by resource and key. Objects are shared, so it costs little."""
    return {
        table.resource: {key: table.get(key) for key in table.keys()}  # noqa: SIM118  (a table is no dict)
        for table in server.store.tables()
        if table.resource not in ASIDE and not table.resource.endswith(WORKED_OUT)
    }


def state(server: Server, began: Snapshot) -> State:
    """What has become of the cluster since it began."""
    found: dict[str, list[Any]] = {}
    gone: list[str] = []
    for resource, objects in snapshot(server).items():
        before = began.get(resource, {})
        gone += [f"{resource} {key}" for key in before if key not in objects]
        changed = [obj for key, obj in objects.items() if before.get(key) is not obj]
        if changed:
            plural = resource.partition(".")[0]
            # Two groups may have resources of one name; the first is the one that is usually meant.
            found[resource if plural in found else plural] = [document("", "", obj) for obj in changed]
    _mask(found)
    compared: State = normalise(found)
    if gone:
        compared["gone"] = sorted(gone)
    return compared


def _mask(found: Mapping[str, list[Any]]) -> None:
    """Take away what is decided by chance and would not be missed by `normalise`."""
    uids = {each["metadata"].get("uid") for documents in found.values() for each in documents}
    for plural, documents in found.items():
        for each in documents:
            for owner in each["metadata"].get("ownerReferences", ()):
                if owner["uid"] not in uids:
                    owner["uid"] = "<gone>"
            if plural == "replicasets" and not each.get("spec", {}).get("replicas"):
                # What an empty set was told last depends on when it became empty.
                for name in SIZES:
                    each["metadata"].get("annotations", {}).pop(name, None)
            if plural == "pods":
                each.get("spec", {}).pop("nodeName", None)
                _unname(each["metadata"])
            elif plural == "nodes":
                # What a node says of itself is its kubelet's business.
                each.pop("status", None)


def _unname(meta: dict[str, Any]) -> None:
    """Take the drawn part off a pod's name. Those of sets are called after their set by `normalise`."""
    generated = meta.get("generateName", "")
    named_after = [owner["kind"] for owner in meta.get("ownerReferences", ()) if owner.get("controller")]
    if generated and meta["name"].startswith(generated) and not set(named_after) & SETS:
        meta["name"] = f"{generated}*"


def differences(wanted: Any, found: Any, at: str = "") -> Iterator[str]:
    """What tells two states apart, in words."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for field in dict.fromkeys((*wanted, *found)):
            where = f"{at}.{field}" if at else str(field)
            if field not in found:
                yield f"{where} is missing"
            elif field not in wanted:
                yield f"{where} is there: {short(found[field], 80)}"
            else:
                yield from differences(wanted[field], found[field], where)
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{at}: {len(found)} instead of {len(wanted)}"
        else:
            for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
                yield from differences(one, other, f"{at}[{number}]")
    elif wanted != found:
        yield f"{at} is {short(found, 80)}, not {short(wanted, 80)}"
