"""The options of a cluster: what each means, and the plan that they make. Options that cannot work are refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

from steersman.api.cloud import CloudProvider
from steersman.api.generated import gated_resources
from steersman.api.label_syntax import subdomain_errors
from steersman.api.suggestions import hint
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.intent.gates import GATES
from steersman.intent.settings import Flag
from steersman.sim.dynamicresources import Devices
from steersman.sim.faults.fault import Fault
from steersman.sim.kubelet import KubeletSettings, Shape
from steersman.sim.world import START
from steersman.snapshot.model import LoadedSnapshot
from steersman.testing.template import DEFAULT_SETTINGS, SERVICE_CIDR, Plan


class ClusterOptions(TypedDict, total=False):
    """The options of a `Cluster`, and the arguments of the marker ``cluster``. All may be left out."""

    nodes: int | Iterable[str]
    """The number of nodes, or their names; 3."""
    controllers: Iterable[Controller[Any] | str]
    """The controllers to run, or their names; those that kube-controller-manager runs by default."""
    faults: Sequence[Fault]
    """Faults between the manager and the API server: see `steersman.sim.faults`."""
    write_latency: tuple[float, float] | None
    """The seconds that each write of a controller takes at least and at most, such as ``(0.001, 0.3)``; none."""
    flags: Mapping[str, Any] | None
    """Flags of kube-controller-manager that its controllers read, without the dashes. Durations are in seconds."""
    gates: Mapping[str, bool] | None
    """Feature gates of kube-controller-manager."""
    shape: Shape
    """The properties of the nodes: capacity, zones, labels and taints."""
    settings: KubeletSettings | None
    """The timing of the kubelets; a container takes a second to start."""
    start: datetime
    """When the world begins; 2026-01-01."""
    shuffle: bool
    """Whether ready tasks run in an order drawn from the seed."""
    cloud: CloudProvider | None
    """The cloud provider, which outlives the manager. By default, load balancers get addresses from a pool."""
    csi: bool
    """Whether there is a simulated CSI driver, with the StorageClass ``csi-sim``."""
    dra: Devices | bool
    """Simulated devices of the nodes, of the DeviceClass ``simulated``. Without, ResourceClaims are not allocated."""
    webhooks: Mapping[str, str | Callable[[Any], Any]] | None
    """Where Services are served that webhooks name: ``{"shop/checker": "127.0.0.1:9443"}``, or a Python function in place of the
    address, which is given the review and returns its response: ``{"shop/checker:443/validate": lambda review: {"allowed": True}}``."""
    journal: bool
    """Whether each write is kept as a line in ``world.journal``."""
    snapshot: str | Path | LoadedSnapshot | None
    """A file of ``steersman snapshot save`` to begin with: its objects, its nodes with their running pods, its time."""


NAMES = tuple(ClusterOptions.__annotations__)
SORTS = {bool: "True or False", str: "text", int: "a whole number", float: "a number of seconds"}


def check_names(given: Iterable[str], known: Sequence[str] = NAMES) -> None:
    """Refuse options that do not exist. Raises `TypeError`."""
    for name in given:
        if name not in known:
            raise TypeError(f"a cluster has no option {name!r}; {hint(name, known)}")


def plan(options: ClusterOptions) -> Plan:
    """The plan of a cluster. Raises `TypeError`, `ValueError`, and `LookupError` for unknown names."""
    check_names(options)
    controllers = _controllers(options.get("controllers", CONTROLLERS))
    dra = options.get("dra", False)
    loaded = _snapshot(options)
    start = options.get("start", START if loaded is None else loaded.time)
    if start.tzinfo is None:
        raise ValueError(f"start must have a time zone, such as {START!r}, not {start!r}")
    return Plan(
        _nodes(options.get("nodes", 3)) if loaded is None else _loaded_nodes(loaded),
        controllers,
        _flags(options.get("flags") or {}, controllers),
        _gates(options.get("gates") or {}),
        bool(options.get("shuffle", False)),
        bool(options.get("journal", False)),
        start,
        _settings(options.get("settings") or DEFAULT_SETTINGS),
        options.get("shape", Shape()),
        options.get("cloud"),
        bool(options.get("csi", False)),
        dra if isinstance(dra, Devices) else Devices() if dra else None,
        loaded,
    )


def _snapshot(options: ClusterOptions) -> LoadedSnapshot | None:
    given = options.get("snapshot")
    if given is None or isinstance(given, LoadedSnapshot):
        return given
    for name in ("nodes", "shape"):
        if name in options:
            raise TypeError(
                f"the nodes of a cluster from a snapshot are those of the snapshot: leave {name!r} out"
            )
    # Imported when needed: most clusters under test are new.
    from steersman.server.storage.durable.errors import DataDirError
    from steersman.snapshot.loading import load_file

    try:
        return load_file(Path(given))
    except DataDirError as error:
        raise ValueError(str(error)) from None


def _loaded_nodes(loaded: LoadedSnapshot) -> tuple[str, ...]:
    return tuple(node.metadata.name for node in loaded.nodes)


def faults(options: ClusterOptions) -> tuple[Fault, ...]:
    """The faults that were asked for. Raises `TypeError`."""
    given = tuple(options.get("faults", ()))
    for fault in given:
        if not isinstance(fault, Fault):
            raise TypeError(
                f"a fault is a value such as faults.crash_after_write(3), not {fault!r}; faults.parse() reads text"
            )
    return given


def latency(options: ClusterOptions) -> tuple[Fault, ...]:
    """The fault that makes writes take time, if that was asked for."""
    seconds = options.get("write_latency")
    if seconds is None:
        return ()
    from steersman.sim.faults.requests import RequestLatency

    least, most = seconds
    return (RequestLatency(least, most),)


def _nodes(given: int | Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, bool | str):
        raise TypeError(f"nodes must be a number or several names, not {given!r}")
    if isinstance(given, int):
        if given < 0:
            raise ValueError(f"nodes must be 0 or more, not {given}")
        return tuple(f"node-{n}" for n in range(1, given + 1))
    names = tuple(given)
    for name in names:
        if not isinstance(name, str) or subdomain_errors(name):
            raise ValueError(f"{name!r} is no name of a node: lower-case letters, digits, '-' and '.'")
        if names.count(name) > 1:
            raise ValueError(f"node {name!r} is there twice")
    return names


def _controllers(given: Iterable[Controller[Any] | str]) -> tuple[Controller[Any], ...]:
    if given is CONTROLLERS:
        return tuple(each for each in CONTROLLERS if not each.disabled_by_default)
    if isinstance(given, str):
        raise TypeError(f"controllers must be several names, such as [{given!r}], not one")
    return tuple(_controller(each) if isinstance(each, str) else each for each in given)


def _controller(name: str) -> Controller[Any]:
    for each in CONTROLLERS:
        if name in (each.name, *each.aliases):
            return each
    names = [each.name for each in CONTROLLERS]
    aliases = [alias for each in CONTROLLERS for alias in each.aliases]
    otherwise = f"available: {', '.join(names)}"
    raise LookupError(f"unknown controller {name!r}; {hint(name, (*names, *aliases), otherwise)}")


def _flags(given: Mapping[str, Any], controllers: Iterable[Controller[Any]]) -> Mapping[str, Any]:
    known = {flag.name: flag for flag in _declared((*CONTROLLERS, *controllers))} if given else {}
    for name, value in given.items():
        flag = known.get(name.lstrip("-"))
        if flag is None:
            otherwise = "no controller reads it"
            raise LookupError(f"unknown flag {name!r}; {hint(name.lstrip('-'), known, otherwise)}")
        if flag.name != name:
            raise LookupError(f"unknown flag {name!r}; did you mean {flag.name!r}?")
        _check_value(flag, value)
    return given


def _declared(controllers: Iterable[Controller[Any]]) -> Iterator[Flag[Any]]:
    for controller in controllers:
        yield from controller.flags
        if isinstance(controller.workers, Flag):
            yield controller.workers
    yield Flag(SERVICE_CIDR, "")


def _check_value(flag: Flag[Any], value: Any) -> None:
    expected = type(flag.default)
    if expected not in SORTS:
        return
    fits = isinstance(value, int | float if expected is float else expected)
    if not fits or (isinstance(value, bool) and expected is not bool):
        raise TypeError(f"flag {flag.name!r} must be {SORTS[expected]}, not {value!r}")
    if expected is float and not 0 <= value < math.inf:
        raise ValueError(f"flag {flag.name!r} must be 0 or more, not {value!r}")


def _gates(given: Mapping[str, bool]) -> Mapping[str, bool]:
    """Gates that are locked may be set: their controllers behave as those of an older version, which can be emulated."""
    known = dict.fromkeys((*GATES, *(row.gate for row in gated_resources()))) if given else {}
    for name, value in given.items():
        if name not in known:
            otherwise = "kube-controller-manager 1.36 has none by that name"
            raise LookupError(f"unknown feature gate {name!r}; {hint(name, known, otherwise)}")
        if not isinstance(value, bool):
            raise TypeError(f"feature gate {name!r} must be True or False, not {value!r}")
    return given


def _settings(given: KubeletSettings) -> KubeletSettings:
    for name in given.__struct_fields__:
        value = getattr(given, name)
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise ValueError(f"{name} of the kubelets must be 0 or more seconds, not {value!r}")
    return given
