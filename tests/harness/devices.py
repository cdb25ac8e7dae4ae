"""Claims, classes, slices and devices for rows, with few words."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.generated import core_v1
from steersman.api.generated import resource_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta

DRIVER = "gpu.example.com"


def convert(value: dict[str, Any], type_: Any) -> Any:
    """An object of a type, as it is read off the wire."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type_)


def device(name: str, memory: str = "", taints: tuple[str, ...] = (), **attributes: Any) -> dict[str, Any]:
    """A device. Taints are ``key=value:effect``."""
    sorts: dict[type, str] = {bool: "bool", int: "int", str: "string"}
    found: dict[str, Any] = {
        "name": name,
        "attributes": {key: {sorts[type(value)]: value} for key, value in attributes.items()},
    }
    if memory:
        found["capacity"] = {"memory": {"value": memory}}
    parts = [(key, *rest.split(":")) for key, _, rest in (taint.partition("=") for taint in taints)]
    found["taints"] = [{"key": key, "value": value, "effect": effect} for key, value, effect in parts]
    return found


def slice_of(
    name: str,
    *devices: dict[str, Any] | str,
    node: str = "node-1",
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    **spec: Any,
) -> v1.ResourceSlice:
    """A slice of the pool of a node. With an empty ``node`` the ``spec`` says where its devices are."""
    found: dict[str, Any] = {
        "driver": driver,
        "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": count},
        "devices": [device(each) if isinstance(each, str) else each for each in devices],
        **({"nodeName": node} if node else {}),
        **spec,
    }
    made: v1.ResourceSlice = convert({"metadata": {"name": name}, "spec": found}, v1.ResourceSlice)
    return made


def selector(*expressions: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": each}} for each in expressions]


def device_class(name: str = "gpu", *expressions: str, mode: str = "") -> v1.DeviceClass:
    spec: dict[str, Any] = {"selectors": selector(*expressions)}
    if mode:
        spec["config"] = [{"opaque": {"driver": DRIVER, "parameters": {"mode": mode}}}]
    made: v1.DeviceClass = convert({"metadata": {"name": name}, "spec": spec}, v1.DeviceClass)
    return made


def exactly(name: str = "r", count: int = 1, *expressions: str, **spec: Any) -> dict[str, Any]:
    return {"name": name, "exactly": alternative("", count, *expressions, **spec)}


def everything(name: str = "r", *expressions: str, **spec: Any) -> dict[str, Any]:
    return exactly(name, 0, *expressions, allocationMode="All", **spec)


def alternative(name: str, count: int = 1, *expressions: str, **spec: Any) -> dict[str, Any]:
    found = {"deviceClassName": "gpu", "count": count, "allocationMode": "ExactCount"}
    named = {"name": name} if name else {}
    return {**found, **named, "selectors": selector(*expressions), **spec}


def first(name: str, *alternatives: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "firstAvailable": list(alternatives)}


def claim(name: str, *requests: dict[str, Any], **devices: Any) -> v1.ResourceClaim:
    made: v1.ResourceClaim = convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": list(requests), **devices}},
        },
        v1.ResourceClaim,
    )
    return made


def node(name: str = "node-1", **labels: str) -> core_v1.Node:
    return core_v1.Node(metadata=ObjectMeta(name=name, labels=labels))
