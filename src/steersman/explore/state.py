"""The state of a cluster, in a form that two runs can be compared by.

Only differences from the initial state count. Removed is whatever depends on chance or time: names, UIDs, times, the node of
a pod, addresses, kubelet reports, heartbeats and events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from steersman.explore.matching import short
from steersman.explore.normalize import normalise
from steersman.server.codec.convert import to_document
from steersman.server.server import Server

State: TypeAlias = dict[str, Any]
Snapshot: TypeAlias = dict[str, dict[str, Any]]

UNCOMPARED = frozenset(
    {"events", "events.events.k8s.io", "ipaddresses.networking.k8s.io", "leases.coordination.k8s.io"}
)
"""Reports and heartbeats, which are not part of a state, and objects that are named after a random address."""
COMPUTED = ".metrics.k8s.io"
"""The group of objects that are computed when read."""
SETS = frozenset({"ReplicaSet", "ReplicationController"})
SIZES = ("deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas")


def snapshot(server: Server) -> Snapshot:
    """The current objects by resource and key. They are shared, not copied."""
    return {
        table.resource: {key: table.get(key) for key in table.keys()}  # noqa: SIM118  (a table is no dict)
        for table in server.store.tables()
        if table.resource not in UNCOMPARED and not table.resource.endswith(COMPUTED)
    }


def state(server: Server, initial: Snapshot) -> State:
    """The objects that differ from the initial ones, normalized."""
    found: dict[str, list[Any]] = {}
    deleted: list[str] = []
    for resource, objects in snapshot(server).items():
        before = initial.get(resource, {})
        deleted += [f"{resource} {key}" for key in before if key not in objects]
        changed = [obj for key, obj in objects.items() if before.get(key) is not obj]
        if changed:
            plural = resource.partition(".")[0]
            # Resources of two groups may share a plural; the first keeps it.
            found[resource if plural in found else plural] = [to_document("", "", obj) for obj in changed]
    _mask(found)
    compared: State = normalise(found)
    if deleted:
        compared["deleted"] = sorted(deleted)
    return compared


def _mask(found: Mapping[str, list[Any]]) -> None:
    """Remove random values that `normalise` keeps."""
    uids = {each["metadata"].get("uid") for documents in found.values() for each in documents}
    for plural, documents in found.items():
        for each in documents:
            for owner in each["metadata"].get("ownerReferences", ()):
                if owner["uid"] not in uids:
                    owner["uid"] = "<gone>"
            if plural == "replicasets" and not each.get("spec", {}).get("replicas"):
                # The sizes recorded on an empty ReplicaSet depend on when it became empty.
                for name in SIZES:
                    each["metadata"].get("annotations", {}).pop(name, None)
            if plural == "pods":
                each.get("spec", {}).pop("nodeName", None)
                _unname(each["metadata"])
            elif plural == "services" and each["spec"].get("clusterIP") != "None":
                for name in ("clusterIP", "clusterIPs"):
                    each["spec"].pop(name, None)
            elif plural == "endpoints":
                _mask_endpoints(each)
            elif plural == "nodes":
                # The status of a node is written by its kubelet.
                each.pop("status", None)


def _mask_endpoints(endpoints: dict[str, Any]) -> None:
    """Remove what depends on the order in which pods were started: their addresses and nodes."""
    for subset in endpoints.get("subsets", ()):
        for address in (*subset.get("addresses", ()), *subset.get("notReadyAddresses", ())):
            address.pop("ip")
            address.pop("nodeName", None)


def _unname(meta: dict[str, Any]) -> None:
    """Remove the random suffix of a pod's name. `normalise` handles pods of ReplicaSets and ReplicationControllers."""
    generated = meta.get("generateName", "")
    named_after = [owner["kind"] for owner in meta.get("ownerReferences", ()) if owner.get("controller")]
    if generated and meta["name"].startswith(generated) and not set(named_after) & SETS:
        meta["name"] = f"{generated}*"


def differences(wanted: Any, found: Any, at: str = "") -> Iterator[str]:
    """Descriptions of the differences between two states."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for field in dict.fromkeys((*wanted, *found)):
            where = f"{at}.{field}" if at else str(field)
            if field not in found:
                yield f"{where} is missing"
            elif field not in wanted:
                yield f"{where} is unexpected: {short(found[field], 80)}"
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
