"""The structured allocator: the devices for the claims of a pod on one node. Pure functions.

Claims, requests and devices are tried in order, pools by driver and name, slices by name; the first full solution is taken,
as kube-scheduler 1.36 does.

differs: devices that consume counters, have binding conditions, or are shared by capacity are not allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from steersman.api.generated import core_v1
from steersman.api.generated import resource_v1 as v1
from steersman.api.scheduling import matches_node_selector_term, tolerates
from steersman.sim.dynamicresources.selectors import SelectorError, matches, qualified

MAX_RESULTS = 32
"""Devices of one claim, as the API limits them."""
MAX_TRIES = 100_000
"""Devices that are tried for one pod on one node. Upstream's limit is a time, 10 seconds."""
_PREVENTING = ("NoSchedule", "NoExecute")

Request: TypeAlias = v1.ExactDeviceRequest | v1.DeviceSubRequest


class AllocationError(Exception):
    """A claim or a class that cannot be allocated anywhere as it is. The message is upstream's."""


class DeviceId(msgspec.Struct, frozen=True):
    """Identifies a device in the cluster."""

    driver: str
    pool: str
    device: str


class Candidate(msgspec.Struct, frozen=True):
    """A device that a node can use."""

    id: DeviceId
    device: v1.Device
    slice: v1.ResourceSlice


class Pool(msgspec.Struct, frozen=True):
    """The devices of a pool that a node can use."""

    driver: str
    name: str
    candidates: tuple[Candidate, ...] = ()
    complete: bool = True
    valid: bool = True
    """Whether the names of its devices are unique."""


class _Option(NamedTuple):
    """A request, or one of its alternatives, with its class."""

    claim: int
    request: str
    """The name of the request in the spec."""
    name: str
    """The name in the result: ``request``, or ``request/alternative``."""
    spec: Request
    device_class: v1.DeviceClass
    all: tuple[Candidate, ...] | None
    """The devices of a request for all devices."""

    @property
    def needed(self) -> int:
        """How many devices it takes."""
        return len(self.all) if self.all is not None else self.spec.count or 1

    @property
    def is_admin(self) -> bool:
        return isinstance(self.spec, v1.ExactDeviceRequest) and bool(self.spec.adminAccess)


def allocated_devices(claims: Iterable[v1.AllocationResult | None]) -> set[DeviceId]:
    """The devices that allocations use. Devices with admin access do not count."""
    return {
        DeviceId(result.driver, result.pool, result.device)
        for allocation in claims
        if allocation is not None
        for result in allocation.devices.results
        if not result.adminAccess
    }


def allocate(
    claims: Sequence[v1.ResourceClaim],
    node: core_v1.Node,
    slices: Iterable[v1.ResourceSlice],
    classes: Callable[[str], v1.DeviceClass | None],
    in_use: Collection[DeviceId],
) -> tuple[v1.AllocationResult, ...] | None:
    """The allocations of claims on a node, in their order; None where there is no solution. Raises `AllocationError`."""
    return _Allocation(claims, gather_pools(slices, node), classes, in_use, node.metadata.name).solution()


# -- pools ------------------------------------------------------------------------------------


def gather_pools(slices: Iterable[v1.ResourceSlice], node: core_v1.Node) -> tuple[Pool, ...]:
    """The pools with devices for a node, in the order they are tried. Slices of an older generation do not count."""
    everywhere: dict[tuple[str, str], list[v1.ResourceSlice]] = {}
    for each in slices:
        everywhere.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    found = []
    for (driver, name), of_pool in sorted(everywhere.items()):
        newest = max(each.spec.pool.generation for each in of_pool)
        current = sorted(
            (each for each in of_pool if each.spec.pool.generation == newest),
            key=lambda each: each.metadata.name,
        )
        usable = tuple(candidate for each in current for candidate in _candidates(each, node))
        if not any(_is_for(each, node) for each in current):
            continue
        complete = len(current) == current[0].spec.pool.resourceSliceCount
        names = [device.name for each in current for device in each.spec.devices]
        found.append(Pool(driver, name, usable, complete, len(names) == len(set(names))))
    return tuple(found)


def _candidates(each: v1.ResourceSlice, node: core_v1.Node) -> Iterable[Candidate]:
    spec = each.spec
    if not _is_for(each, node):
        return
    for device in spec.devices:
        if spec.perDeviceNodeSelection and not _is_local(
            node, device.nodeName, device.allNodes, device.nodeSelector
        ):
            continue
        if (
            not device.consumesCounters
            and not device.bindingConditions
            and not device.allowMultipleAllocations
        ):
            yield Candidate(DeviceId(spec.driver, spec.pool.name, device.name), device, each)


def _is_for(each: v1.ResourceSlice, node: core_v1.Node) -> bool:
    spec = each.spec
    if spec.perDeviceNodeSelection:
        return any(_is_local(node, one.nodeName, one.allNodes, one.nodeSelector) for one in spec.devices)
    return _is_local(node, spec.nodeName, spec.allNodes, spec.nodeSelector)


def _is_local(
    node: core_v1.Node, name: str | None, everywhere: bool | None, selector: core_v1.NodeSelector | None
) -> bool:
    if name:
        return node.metadata.name == name
    return bool(everywhere) or (selector is not None and selects(selector, node))


def selects(selector: core_v1.NodeSelector, node: core_v1.Node) -> bool:
    """Whether a node selector selects a node."""
    return any(
        matches_node_selector_term(term, node.metadata.name, node.metadata.labels)
        for term in selector.nodeSelectorTerms
    )


# -- the search -------------------------------------------------------------------------------


class _Allocation:
    """The search for the devices of some claims on one node."""

    def __init__(
        self,
        claims: Sequence[v1.ResourceClaim],
        pools: tuple[Pool, ...],
        classes: Callable[[str], v1.DeviceClass | None],
        in_use: Collection[DeviceId],
        node: str,
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._classes = classes
        self._in_use = in_use
        self._node = node
        self._tries = MAX_TRIES
        self._selectable: dict[tuple[int, str, DeviceId], bool] = {}
        self._taken: dict[DeviceId, int] = {}
        """Devices taken without admin access."""
        self._chosen: list[list[tuple[_Option, Candidate]]] = [[] for _ in claims]
        self._requests = [
            self._options(index, request)
            for index, claim in enumerate(claims)
            for request in claim.spec.devices.requests or ()
        ]

    def solution(self) -> tuple[v1.AllocationResult, ...] | None:
        """The allocations, or None."""
        for claim in self._claims:
            for constraint in claim.spec.devices.constraints:
                if constraint.matchAttribute is None and constraint.distinctAttribute is None:
                    raise AllocationError(
                        f"claim {claim.key}: empty constraint (unsupported constraint type?)"
                    )
        for index, claim in enumerate(self._claims):
            least = sum(
                min(option.needed for option in options)
                for options in self._requests
                if options[0].claim == index
            )
            if least > MAX_RESULTS:
                raise AllocationError(
                    f"claim {claim.key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
                )
        if not self._place(0):
            return None
        return tuple(map(self._result, range(len(self._claims))))

    def _options(self, claim: int, request: v1.DeviceRequest) -> tuple[_Option, ...]:
        if request.exactly is not None:
            return (self._option(claim, request.name, request.name, request.exactly),)
        return tuple(
            self._option(claim, request.name, f"{request.name}/{each.name}", each)
            for each in request.firstAvailable
        )

    def _option(self, claim: int, request: str, name: str, spec: Request) -> _Option:
        where = f"claim {self._claims[claim].key}, request {name}"
        found = self._classes(spec.deviceClassName)
        if found is None:
            raise AllocationError(f"{where}: could not retrieve device class {spec.deviceClassName}")
        option = _Option(claim, request, name, spec, found, None)
        if spec.allocationMode != "All":
            return option
        for pool in self._pools:
            state = "being updated" if not pool.complete else "" if pool.valid else "invalid"
            if state:
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.driver}/{pool.name} is currently {state}"
                )
        return option._replace(
            all=tuple(
                candidate
                for pool in self._pools
                for candidate in pool.candidates
                if self._is_selectable(option, candidate)
            )
        )

    @cached_property
    def _candidates(self) -> tuple[Candidate, ...]:
        return tuple(
            candidate for pool in self._pools if pool.complete and pool.valid for candidate in pool.candidates
        )

    def _place(self, number: int) -> bool:
        """Place the requests from a number on: the first alternative that leads to a solution."""
        if number == len(self._requests):
            return True
        return any(self._fill(number, option, 0, 0) for option in self._requests[number])

    def _fill(self, number: int, option: _Option, filled: int, start: int) -> bool:
        """Find the remaining devices of a request. Devices of one request are alike: only later ones are tried."""
        if option.all is not None and not option.all:
            return False
        if filled == option.needed:
            return self._place(number + 1)
        chosen = self._chosen[option.claim]
        if len(chosen) + option.needed - filled > MAX_RESULTS:
            return False
        everything = option.all if option.all is not None else self._candidates
        stop = filled + 1 if option.all is not None else len(everything)
        for index in range(start, stop):
            candidate = everything[index]
            if not self._is_usable(option, candidate):
                continue
            chosen.append((option, candidate))
            if not option.is_admin:
                self._taken[candidate.id] = self._taken.get(candidate.id, 0) + 1
            if self._meets_constraints(option.claim) and self._fill(number, option, filled + 1, index + 1):
                return True
            chosen.pop()
            if not option.is_admin:
                self._taken[candidate.id] -= 1
        return False

    def _is_usable(self, option: _Option, candidate: Candidate) -> bool:
        self._tries -= 1
        if self._tries < 0:
            raise AllocationError(f"node {self._node}: timed out trying to allocate devices")
        if option.is_admin:
            if any(candidate.id == other.id for _, other in self._chosen[option.claim]):
                return False
        elif candidate.id in self._in_use or self._taken.get(candidate.id):
            return False
        for taint in candidate.device.taints:
            if taint.effect in _PREVENTING and not tolerates(option.spec.tolerations, taint):
                return False
        return self._is_selectable(option, candidate)

    def _is_selectable(self, option: _Option, candidate: Candidate) -> bool:
        """Whether a device matches the selectors of the class and of the request."""
        key = (option.claim, option.name, candidate.id)
        known = self._selectable.get(key)
        if known is None:
            name = option.device_class.metadata.name
            own = self._claims[option.claim].key
            known = _all_match(option.device_class.spec.selectors, candidate, f"class {name}") and _all_match(
                option.spec.selectors, candidate, f"claim {own}"
            )
            self._selectable[key] = known
        return known

    # -- constraints --------------------------------------------------------------------------

    def _meets_constraints(self, claim: int) -> bool:
        return all(
            _meets(constraint, self._chosen[claim])
            for constraint in self._claims[claim].spec.devices.constraints
        )

    # -- results ------------------------------------------------------------------------------

    def _result(self, claim: int) -> v1.AllocationResult:
        chosen = self._chosen[claim]
        results = tuple(
            v1.DeviceRequestAllocationResult(
                request=option.name,
                driver=candidate.id.driver,
                pool=candidate.id.pool,
                device=candidate.id.device,
                adminAccess=True if option.is_admin else None,
                tolerations=option.spec.tolerations,
            )
            for option, candidate in chosen
        )
        options = tuple({option.name: option for option, _ in chosen}.values())
        return v1.AllocationResult(
            devices=v1.DeviceAllocationResult(
                results=results, config=(*_class_config(options), *self._claim_config(claim, options))
            ),
            nodeSelector=_node_selector([candidate for _, candidate in chosen]),
        )

    def _claim_config(
        self, claim: int, options: tuple[_Option, ...]
    ) -> Iterable[v1.DeviceAllocationConfiguration]:
        for config in self._claims[claim].spec.devices.config:
            applies = not config.requests or any(
                name in config.requests for option in options for name in (option.request, option.name)
            )
            if applies:
                yield v1.DeviceAllocationConfiguration(
                    source="FromClaim", requests=config.requests, opaque=config.opaque
                )


def _all_match(selectors: Iterable[v1.DeviceSelector], candidate: Candidate, owner: str) -> bool:
    for number, selector in enumerate(selectors):
        try:
            if not matches(selector, candidate.id.driver, candidate.device):
                return False
        except SelectorError as error:
            raise AllocationError(f"{owner}: selector #{number}: {error}") from None
    return True


def _meets(constraint: v1.DeviceConstraint, chosen: Sequence[tuple[_Option, Candidate]]) -> bool:
    """Whether all devices of the constraint's requests share, or differ in, the attribute."""
    name = constraint.matchAttribute or constraint.distinctAttribute or ""
    values = []
    for option, candidate in chosen:
        if constraint.requests and not {option.request, option.name} & set(constraint.requests):
            continue
        found = _attribute(candidate, name)
        if found is None:
            return False
        values.append(found)
    if constraint.matchAttribute is not None:
        return all(value == values[0] for value in values)
    return len(values) == len(set(values))


def _attribute(candidate: Candidate, name: str) -> v1.DeviceAttribute | None:
    """An attribute by its fully qualified name; the driver may have published it without its domain."""
    attributes = candidate.device.attributes
    if name in attributes:
        return attributes[name]
    domain, short = qualified(name, "")
    return attributes.get(short) if domain == candidate.id.driver else None


def _class_config(options: Iterable[_Option]) -> Iterable[v1.DeviceAllocationConfiguration]:
    """The configuration of each class once, with the requests that use the class."""
    users: dict[str, list[_Option]] = {}
    for option in options:
        users.setdefault(option.device_class.metadata.name, []).append(option)
    for of_class in users.values():
        for config in of_class[0].device_class.spec.config:
            yield v1.DeviceAllocationConfiguration(
                source="FromClass", requests=tuple(option.name for option in of_class), opaque=config.opaque
            )


def _node_selector(chosen: Sequence[Candidate]) -> core_v1.NodeSelector | None:
    """The nodes where the chosen devices can be used; None: all."""
    fields: dict[core_v1.NodeSelectorRequirement, None] = {}
    labels: dict[core_v1.NodeSelectorRequirement, None] = {}
    for candidate in chosen:
        own = candidate.slice.spec.perDeviceNodeSelection
        name = candidate.device.nodeName if own else candidate.slice.spec.nodeName
        selector = candidate.device.nodeSelector if own else candidate.slice.spec.nodeSelector
        if name:
            only = core_v1.NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
            return core_v1.NodeSelector(nodeSelectorTerms=(core_v1.NodeSelectorTerm(matchFields=(only,)),))
        for term in selector.nodeSelectorTerms[:1] if selector is not None else ():
            fields.update(dict.fromkeys(term.matchFields))
            labels.update(dict.fromkeys(term.matchExpressions))
    if not fields and not labels:
        return None
    term = core_v1.NodeSelectorTerm(matchFields=tuple(fields), matchExpressions=tuple(labels))
    return core_v1.NodeSelector(nodeSelectorTerms=(term,))
