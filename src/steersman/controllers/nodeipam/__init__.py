"""node-ipam-controller (a decision): assigns each node a CIDR for its pods, of each cluster CIDR one.

Runs with ``--allocate-node-cidrs``. A node keeps its CIDRs until it is deleted; no two nodes get overlapping ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import msgspec

from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.ip_addresses import Network, parse_cidr
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Key
from steersman.controllers.nodeipam.range_allocator import METRICS, Config, Exhausted, RangeAllocator
from steersman.controllers.shared.flags import ALLOCATE_NODE_CIDRS, CLUSTER_CIDR
from steersman.intent.actions import Emit, Patch, PatchType
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

SERVICE_RANGE = Flag("service-cluster-ip-range", "", "The CIDR of Services, or two of different IP families.")
MASK_SIZE = Flag("node-cidr-mask-size", 0, "The mask size of node CIDRs, in bits.")
MASK_SIZE_IPV4 = Flag("node-cidr-mask-size-ipv4", 0, "The mask size of IPv4 node CIDRs, in bits.")
MASK_SIZE_IPV6 = Flag("node-cidr-mask-size-ipv6", 0, "The mask size of IPv6 node CIDRs, in bits.")
DEFAULT_SIZES = {4: 24, 6: 64}
"""The default mask size of a node CIDR by IP family, in bits."""
WORKERS = 30
BY_CIDR = "by_cidr"
ATTEMPTS = 3


class Observation(msgspec.Struct, frozen=True):
    """A node, and the CIDRs of all nodes."""

    node: Node
    allocator: RangeAllocator


def networks(text: str) -> tuple[Network, ...]:
    """Parses comma-separated CIDRs. Raises ValueError with upstream's message."""
    found = []
    for number, word in enumerate(text.strip().split(",")):
        cidr = parse_cidr(word.strip())
        if cidr is None:
            raise ValueError(f"invalid CIDR[{number}]: <nil> (invalid CIDR address: {word})")
        found.append(cidr)
    return tuple(found)


def mask_size(settings: Settings, cluster: Network) -> int:
    """The mask size of the node CIDRs of a cluster CIDR."""
    of_family = settings[MASK_SIZE_IPV4 if cluster.version == 4 else MASK_SIZE_IPV6]
    return settings[MASK_SIZE] or of_family or DEFAULT_SIZES[cluster.version]


def read_config(settings: Settings) -> Config:
    """The ranges that the flags describe, which have been validated."""
    if not settings[ALLOCATE_NODE_CIDRS] or not settings[CLUSTER_CIDR].strip():
        return Config()
    clusters = networks(settings[CLUSTER_CIDR])
    services = networks(settings[SERVICE_RANGE]) if settings[SERVICE_RANGE].strip() else ()
    return Config(tuple((cluster, mask_size(settings, cluster)) for cluster in clusters), services)


def by_cidr(node: Node) -> Iterable[str]:
    """Indexes a node by its CIDRs."""
    return node.spec.podCIDRs


def observe(caches: Caches, key: Key) -> Observation | None:
    node, allocator = caches[NODES].get(key), memory_of(caches, RangeAllocator)
    if node is None:
        return None
    if not node.spec.podCIDRs:
        # No node is filed under None. One that cannot be decoded might have any CIDR, unless it was known before.
        for other in caches[NODES].by(BY_CIDR, None):
            allocator.account_for_known(other)
    return Observation(node, allocator)


async def decide(seen: Observation, now: datetime) -> Verdict:
    node, allocator = seen.node, seen.allocator
    if node.metadata.deletionTimestamp is not None:
        return Rest("node is being deleted")
    if node.spec.podCIDRs:
        # differs: upstream does not start, or ends, where it finds such a node at the start.
        problem = allocator.account(node)
        if problem:
            raise InvalidSpec(problem)
        return Rest("node has its CIDRs")
    try:
        cidrs = allocator.reserve(node)
    except Exhausted as error:
        await _emit(node, "CIDRNotAvailable")
        raise InvalidSpec(str(error)) from None
    for measure in allocator.take_measures():
        await measure
    return await _assign(node, cidrs)


async def _assign(node: Node, cidrs: tuple[str, ...]) -> Verdict:
    """Writes the CIDRs of a node. The uid keeps them from another node of its name, since they are released with it."""
    spec = {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)}
    patch = Patch(node, {"metadata": {"uid": node.metadata.uid}, "spec": spec}, PatchType.STRATEGIC)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            await patch
        except NotFound:
            return Rest("node is gone")
        except Conflict:
            raise
        except ApiError:
            if attempt == ATTEMPTS:
                await _emit(node, "CIDRAssignmentFailed")
                raise
        else:
            break
    return Rest(f"assigned {', '.join(cidrs)}")


async def _emit(node: Node, status: str) -> None:
    await Emit(node, "Normal", status, f"Node {node.metadata.name} status is now: {status}")


# -- enqueue --------------------------------------------------------------------------------------


def _changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """A new node without CIDRs, or with impossible ones; nodes that wait, where CIDRs are released."""
    allocator, old, new = memory_of(caches, RangeAllocator), change.old, change.new
    if new is None:
        return tuple(allocator.waiting) if allocator.forget(change.obj.metadata.name) else ()
    problem = allocator.account(new)
    same = old is not None and old is not new and old.metadata.uid == new.metadata.uid
    if same and old is not None and old.spec.podCIDRs == new.spec.podCIDRs:
        return ()
    return (new.key,) if problem or not new.spec.podCIDRs else ()


def _no_keys(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    return ()


def _measures(caches: Caches, change: Change[Node]) -> Iterable[Measure]:
    """The metrics of what `_changed` has counted."""
    return memory_of(caches, RangeAllocator).take_measures()


def configure(settings: Settings) -> Controller[Observation]:
    return Controller(
        name="node-ipam-controller",
        aliases=("nodeipam",),
        service_account="node-controller",
        event_component="cidrAllocator",
        watches=(
            Watch(NODES, to=_changed, indexes={BY_CIDR: by_cidr}),
            Watch(NODES, to=_no_keys, measures=_measures),
        ),
        workers=WORKERS,
        flags=(ALLOCATE_NODE_CIDRS, CLUSTER_CIDR, SERVICE_RANGE, MASK_SIZE, MASK_SIZE_IPV4, MASK_SIZE_IPV6),
        enabled=lambda settings: settings[ALLOCATE_NODE_CIDRS],
        configure=configure,
        observe=observe,
        decide=decide,
        memory=partial(RangeAllocator, read_config(settings)),
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
