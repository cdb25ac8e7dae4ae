"""Requests about the kinds that feature gates add, and kube-apiserver's answers to them, in ``gated.json``.

KUBEBUILDER_ASSETS=... python -m tests.server.registry.gated     records them anew
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.client.api import Api
from tests.harness.envtest import RealPlane

Document = dict[str, Any]
GATES = ("DRADeviceTaintRules", "DRAResourcePoolStatus", "GenericWorkload")
VERSIONS = {
    "DeviceTaintRule": "resource.k8s.io/v1beta2",
    "PodGroup": "scheduling.k8s.io/v1alpha2",
    "ResourcePoolStatusRequest": "resource.k8s.io/v1alpha3",
}
"""The kinds, and the versions that they are in."""
_LONG = "a" * 254
_CONDITION = {
    "type": "Complete",
    "status": "True",
    "reason": "CalculationComplete",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_BASIC: Document = {"schedulingPolicy": {"basic": {}}}


class Row(NamedTuple):
    """A new object, and an update of it."""

    name: str
    kind: str
    spec: Document
    change: Document | None = None
    """Top-level fields to replace, or the fields of ``spec``."""
    subresource: str = ""
    then: Document | None = None
    """Another status, after the first."""


def _group(name: str, spec: Document, **more: Any) -> Row:
    return Row(f"PodGroup, {name}", "PodGroup", spec, **more)


def _request(name: str, *, driver: str = "gpu.example.com", **more: Any) -> Row:
    spec: Document = {key: more.pop(key) for key in ("poolName", "limit") if key in more}
    return Row(f"request, {name}", "ResourcePoolStatusRequest", {"driver": driver, **spec}, **more)


def _answered(name: str, *, then: Document | None = None, **status: Any) -> Row:
    return _request(name, change={"status": status}, subresource="status", then=then)


def _rule(name: str, spec: Document, **more: Any) -> Row:
    return Row(f"rule, {name}", "DeviceTaintRule", {"taint": _TAINT, **spec}, **more)


_TAINT: Document = {
    "key": "a",
    "value": "b",
    "effect": "NoExecute",
    "timeAdded": "2026-01-01T00:00:00Z",
}
_CONDITIONS = [{**_CONDITION, "type": f"T{n}"} for n in range(9)]
_BAD_POOL: Document = {
    "driver": "a_",
    "poolName": "B_",
    "generation": -1,
    "resourceSliceCount": 0,
    "totalDevices": -1,
    "allocatedDevices": -1,
    "availableDevices": -1,
    "unavailableDevices": -1,
    "nodeName": "A_",
    "validationError": "x" * 257,
}
_POOL = {"driver": "a", "poolName": "b", "generation": 1}
ROWS = (
    _group("no policy", {}),
    _group("an empty policy", {"schedulingPolicy": {}}),
    _group("two policies", {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}),
    _group("a gang of none", {"schedulingPolicy": {"gang": {}}}),
    _group("a gang of less than none", {"schedulingPolicy": {"gang": {"minCount": -1}}}),
    _group("a gang", {"schedulingPolicy": {"gang": {"minCount": 3}}}),
    _group("no template", {**_BASIC, "podGroupTemplateRef": {}}),
    _group("a template without names", {**_BASIC, "podGroupTemplateRef": {"workload": {}}}),
    _group(
        "a template of odd names",
        {
            **_BASIC,
            "podGroupTemplateRef": {"workload": {"workloadName": "A_", "podGroupTemplateName": "a.b"}},
        },
    ),
    _group(
        "fields of other gates",
        {
            **_BASIC,
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": "Pod",
            "priorityClassName": "high",
            "priority": 3,
            "resourceClaims": [{"name": "a", "resourceClaimName": "b"}],
        },
    ),
    _group("another size", {"schedulingPolicy": {"gang": {"minCount": 3}}}, change={"schedulingPolicy": {"gang": {"minCount": 4}}}),
    _group("another policy", {"schedulingPolicy": {"gang": {"minCount": 3}}}, change=_BASIC),
    _group(
        "a template afterwards",
        _BASIC,
        change={"podGroupTemplateRef": {"workload": {"workloadName": "a", "podGroupTemplateName": "b"}}},
    ),
    _group("another mode", {**_BASIC, "disruptionMode": "PodGroup"}),
    _group("another mode afterwards", _BASIC, change={"disruptionMode": "PodGroup"}),
    _group("a priority afterwards", _BASIC, change={"priority": 3}),
    _group("a status", _BASIC, change={"status": {"conditions": [_CONDITION]}}, subresource="status"),
    _group("a status with claims", _BASIC, change={"status": {"resourceClaimStatuses": [{"name": "a"}]}}, subresource="status"),
    _group("a status with half a condition", _BASIC, change={"status": {"conditions": [{"type": "x"}]}}, subresource="status"),
    _rule("of all devices", {}),
    _rule("of a device", {"deviceSelector": {"driver": "d.test", "pool": "p", "device": "d"}}),
    _rule("of an odd device", {"deviceSelector": {"driver": "A_", "pool": "b//", "device": "D_"}}),
    _rule("of empty names", {"deviceSelector": {"driver": "", "pool": "", "device": ""}}),
    _rule("no taint", {"taint": {}}),
    _rule("an odd taint", {"taint": {"key": "a b", "value": "c d", "effect": "Nope"}}),
    _rule("no key", {"taint": {"effect": "None"}}),
    _rule("an odd device afterwards", {}, change={"deviceSelector": {"driver": "A_"}}),
    _rule("an odd taint afterwards", {}, change={"taint": {**_TAINT, "effect": "Nope", "value": "c d"}}),
    _rule("no effect afterwards", {}, change={"taint": {**_TAINT, "effect": ""}}),
    _rule("a status", {}, change={"status": {"conditions": [_CONDITION]}}, subresource="status"),
    _rule("a status with half a condition", {}, change={"status": {"conditions": [{"type": "x"}]}}, subresource="status"),
    _rule("a status with many conditions", {}, change={"status": {"conditions": _CONDITIONS}}, subresource="status"),
    _request("no driver", driver=""),
    _request("a driver with an underscore", driver="A_b"),
    _request("a driver in capitals", driver="GPU.Example.com", poolName="p/q", limit=5),
    _request("a long driver", driver=_LONG),
    _request("no pool", poolName=""),
    _request("a pool in capitals", poolName="A_/b"),
    _request("a pool with an empty part", poolName="a//b"),
    _request("a long pool", poolName=_LONG),
    _request("no limit", limit=0),
    _request("a large limit", limit=1001),
    _request("default limit"),
    _request("another limit", change={"limit": 3}),
    _answered("an empty status"),
    _answered("fewer than no pools", poolCount=-1),
    _answered("half a condition", poolCount=0, conditions=[{"type": "x"}]),
    _answered("an empty pool", poolCount=1, pools=[{}]),
    _answered("a bad pool", poolCount=1, pools=[_BAD_POOL]),
    _answered("many pools", poolCount=1, pools=[_POOL] * 1001),
    _answered("many conditions", poolCount=1, conditions=[{**_CONDITION, "type": f"T{n}"} for n in range(11)]),
    _answered("a condition twice", poolCount=0, conditions=[_CONDITION, _CONDITION]),
    _answered("a pool and a condition", poolCount=1, pools=[_POOL], conditions=[_CONDITION]),
    _answered("answered twice", poolCount=0, conditions=[_CONDITION], then={"poolCount": 1, "conditions": [_CONDITION]}),
    _answered("an answer that is taken back", poolCount=0, conditions=[_CONDITION], then={}),
)  # fmt: skip
ANSWERS = Path(__file__).with_name("gated.json")


async def answer(api: Api, namespace: str, row: Row) -> Document:
    """What a server answers to a row: the object as it is in the end, or the error."""
    version = VERSIONS[row.kind]
    group, _, number = version.partition("/")
    kind = load(group, number, row.kind).untyped
    namespace = namespace if kind.namespaced else ""
    name = f"row-{ROWS.index(row)}"
    body = {"apiVersion": version, "kind": row.kind, "metadata": {"name": name}, "spec": row.spec}
    try:
        made = await api.create(kind, namespace, body)
        for change in (row.change, row.then and {"status": row.then}):
            if change is not None:
                changed = (
                    {**made, **change} if row.subresource else {**made, "spec": {**made["spec"], **change}}
                )
                write = api.update_status if row.subresource else api.update
                made = await write(kind, namespace, name, changed)
    except ApiError as error:
        return {"code": error.code, "message": error.message}
    return {**_kept(made["metadata"]), **{part: made.get(part) for part in ("spec", "status")}}


def _kept(metadata: Mapping[str, Any]) -> Document:
    return {"finalizers": list(metadata.get("finalizers") or ())}


def flags() -> tuple[str, ...]:
    """The flags of a kube-apiserver that serves these kinds."""
    gates = ",".join(f"{gate}=true" for gate in GATES)
    return (
        f"--feature-gates={gates}",
        f"--runtime-config={','.join(f'{version}=true' for version in VERSIONS.values())}",
    )


async def _record() -> None:
    with RealPlane.start(apiserver=flags()) as plane:
        async with plane.connect() as api:
            answers = {row.name: await answer(api, "default", row) for row in ROWS}
    ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    asyncio.run(_record())
