"""Chapters of the scenario about devices: claims, their templates and their status, classes, and slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.real.scenario import APPLY, STRATEGIC, TABLE, ZERO, Ask, doc, get, here, patch, post, put
from tests.real.scenario_storage import kinds, packed

API = "resource.k8s.io/v1"
CLASSES, SLICES = (f"/apis/{API}/{name}" for name in ("deviceclasses", "resourceslices"))
DEVICE_CLAIMS, TEMPLATES = (
    here(name, "resource.k8s.io") for name in ("resourceclaims", "resourceclaimtemplates")
)
EXACT: dict[str, Any] = {"name": "r", "exactly": {"deviceClassName": "gpu"}}


def exact(**more: Any) -> dict[str, Any]:
    """The spec of a claim with one request."""
    return {"devices": {"requests": [{**EXACT, "exactly": {**EXACT["exactly"], **more}}]}}


def config(**more: Any) -> dict[str, Any]:
    return {"devices": {"requests": [EXACT], "config": [more]}}


def constraint(**more: Any) -> dict[str, Any]:
    return {"devices": {"requests": [EXACT], "constraints": [more]}}


def cel(text: str) -> dict[str, Any]:
    return {"cel": {"expression": text}}


OPAQUE = {"driver": "d.test", "parameters": {"x": 1}}
CLAIM_SPECS: Mapping[str, Any] = {
    "nothing": {},
    "neither": {"devices": {"requests": [{"name": "r"}]}},
    "no class": exact(deviceClassName=""),
    "a count": exact(count=3),
    "admin access": exact(adminAccess=True),
    "an empty selector": exact(selectors=[{}]),
    "33 selectors": exact(selectors=[cel("true")] * 33),
    "capacity": exact(capacity={"requests": {"mem": "1Gi"}}),
    "odd capacity": exact(capacity={"requests": {"a b": "1", "d.test/mem": "x"}}),
    "a constraint": constraint(requests=["r"], matchAttribute="d.test/a"),
    "a configuration": config(requests=["r"], opaque=OPAQUE),
    "an empty configuration": config(),
    "an odd driver": config(opaque={**OPAQUE, "driver": "A_b"}),
    "no parameters": config(opaque={"driver": "d.test"}),
    "true for 1": config(opaque={"driver": "d.test", "parameters": {"x": True}}),
    "33 configurations": {"devices": {"requests": [EXACT], "config": [{"opaque": OPAQUE}] * 33}},
    "an unknown field": exact(foo=1),
}  # fmt: skip


def _claims() -> Iterator[tuple[str, str, dict[str, Any], Mapping[str, Any]]]:
    good = {**config(requests=["r"], opaque=OPAQUE)}
    claim = doc(API, "ResourceClaim", "good", spec=good)
    yield "claim", DEVICE_CLAIMS, claim, {title: {"spec": spec} for title, spec in CLAIM_SPECS.items()}
    template = doc(API, "ResourceClaimTemplate", "good", spec={"spec": good})
    chosen = ("nothing", "no class", "admin access", "true for 1", "neither")
    yield (
        "template",
        TEMPLATES,
        template,
        {
            **{title: {"spec": {"spec": CLAIM_SPECS[title]}} for title in chosen},
            "labels": {"spec": {"spec": good, "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}},
            "odd labels": {
                "spec": {"spec": good, "metadata": {"labels": {"a b": "c d"}, "annotations": {"e f": "g"}}}
            },
            "a name": {"spec": {"spec": good, "metadata": {"name": "x", "finalizers": ["a.b/c"]}}},
        },
    )


def _immutable() -> Iterator[Ask]:
    """A claim whose parameters would change from 1 to true, which are equal in Python. The message shows a Go struct."""
    for title in ("true for 1", "a configuration", "no parameters"):
        change = {"spec": CLAIM_SPECS[title]}
        yield patch(f"claim: merge: {title}", f"{DEVICE_CLAIMS}/good?dryRun=All", change, head=True)


def _classes() -> Iterator[tuple[str, str, dict[str, Any], Mapping[str, Any]]]:
    made = doc(API, "DeviceClass", "good", spec={"config": [{"opaque": OPAQUE}]})
    yield "class", CLASSES, made, {
        "nothing": {"spec": {}},
        "an empty selector": {"spec": {"selectors": [{}]}},
        "33 selectors": {"spec": {"selectors": [cel("true")] * 33}},
        "true for 1": {"spec": {"config": [{"opaque": {**OPAQUE, "parameters": {"x": True}}}]}},
        "no parameters": {"spec": {"config": [{"opaque": {"driver": "d.test"}}]}},
        "an empty configuration": {"spec": {"config": [{}]}},
        "an odd driver": {"spec": {"config": [{"opaque": {**OPAQUE, "driver": "A_"}}]}},
        "33 configurations": {"spec": {"config": [{"opaque": OPAQUE}] * 33}},
        "an extended resource": {"spec": {"extendedResourceName": "d.test/gpu"}},
        "an odd extended resource": {"spec": {"extendedResourceName": "cpu"}},
        "no extended resource": {"spec": {"extendedResourceName": ""}},
        "an unknown field": {"spec": {"foo": 1}},
    }  # fmt: skip


POLICIES: Mapping[str, Any] = {
    "of nothing": {},
    "of values": {"default": "1", "validValues": ["1", "2"]},
    "of odd values": {"default": "9", "validValues": ["3", "1", "1", "9Gi"]},
    "of many values": {"default": "1", "validValues": [str(n) for n in range(11)]},
    "without a default": {"validValues": ["1"]},
    "of a range": {"default": "1", "validRange": {"min": "1", "max": "3", "step": "1"}},
    "of an odd range": {"default": "9", "validRange": {"min": "5", "max": "3"}},
    "of a large range": {"default": "1", "validRange": {"min": "1", "max": "9"}},
    "of a small default": {"default": "1", "validRange": {"min": "2"}},
    "of half a range": {"default": "1", "validRange": {"max": "3"}},
    "of a range without a default": {"validRange": {"min": "1"}},
    "of odd steps": {"default": "2", "validRange": {"min": "1", "max": "3", "step": "3"}},
    "of a long step": {"default": "1", "validRange": {"min": "1", "step": "9"}},
    "of both": {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}},
}


def _slices() -> Iterator[tuple[str, str, dict[str, Any], Mapping[str, Any]]]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base: dict[str, Any] = {"driver": "d.test", "nodeName": "n", "pool": pool, "devices": [{"name": "d"}]}

    def device(**more: Any) -> dict[str, Any]:
        return {"spec": {**base, "devices": [{"name": "d", **more}]}}

    def spec(**more: Any) -> dict[str, Any]:
        return {"spec": {**base, **more}}

    def shared(policy: Any) -> dict[str, Any]:
        capacity = {"mem": {"value": "4", "requestPolicy": policy}}
        return device(allowMultipleAllocations=True, capacity=capacity)

    yield "slice", SLICES, doc(API, "ResourceSlice", "good", spec=base), {
        "an odd driver": spec(driver="A_"),
        "attributes": device(attributes={"a": {"int": 5}, "b": {"string": "x"}, "c": {"bool": True}, "d": {"version": "1.2.3"}, "d.test/e": {"int": 1}}),
        "an empty attribute": device(attributes={"a": {}}),
        "two values": device(attributes={"a": {"int": 5, "string": "x"}}),
        "a long string": device(attributes={"a": {"string": "x" * 65}}),
        "an odd version": device(attributes={"a": {"version": "1"}}),
        "a long version": device(attributes={"a": {"version": "1.2.3-" + "a" * 65}}),
        **{f"attribute {name!r}": device(attributes={name: {"int": 1}}) for name in ("a b", "A_/x", "", "a/b/c", "0", "/a", "a/")},
        "capacity": device(capacity={"mem": {"value": "1Gi"}}),
        "odd capacity": device(capacity={"a b": {"value": "1"}}),
        "text for capacity": device(capacity={"mem": {"value": "x"}}),
        "fraction of capacity": device(capacity={"mem": {"value": "0.5"}}),
        **{f"requests {title}": shared(policy) for title, policy in POLICIES.items()},
        "a policy of one": device(capacity={"mem": {"value": "4", "requestPolicy": {"default": "1"}}}),
        "counters": spec(sharedCounters=[{"name": "c", "counters": {"mem": {"value": "1"}}}], devices=None),
        "odd counters": spec(sharedCounters=[{"name": "C_", "counters": {}}, {"name": "C_", "counters": {"A b": {"value": "1"}}}], devices=None),
        "consumed": device(consumesCounters=[{"counterSet": "c", "counters": {"mem": {"value": "1"}}}]),
        "consumed oddly": device(consumesCounters=[{"counterSet": "", "counters": {}}, {"counterSet": "C_", "counters": {"A b": {"value": "1"}}}]),
        "binding": device(bindingConditions=["a"], bindingFailureConditions=["b"], bindsToNode=True),
        "odd binding": device(bindingConditions=["a b", "a b"], bindingFailureConditions=["a", "b", "c", "d", "e"]),
        "half a binding": device(bindingConditions=["a"]),
        "a resource of nodes": device(nodeAllocatableResourceMappings={"cpu": {"capacityKey": "mem"}}),
        "an unknown field": device(foo=1),
    }  # fmt: skip


RESULT = {"request": "r", "driver": "d.test", "pool": "p", "device": "d"}
ALLOCATION: dict[str, Any] = {"devices": {"results": [RESULT]}}
USER = {"resource": "pods", "name": "x", "uid": ZERO}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
STATUS = {"driver": "d.test", "pool": "p", "device": "d"}


def results(**more: Any) -> dict[str, Any]:
    return {"allocation": {"devices": {"results": [{**RESULT, **more}]}}}


def reported(**more: Any) -> dict[str, Any]:
    return {"allocation": ALLOCATION, "devices": [{**STATUS, **more}]}


STATUSES: Mapping[str, Any] = {
    "nothing": {},
    "an allocation": {"allocation": ALLOCATION},
    "admin access": results(adminAccess=True),
    "consumed": results(consumedCapacity={"mem": "1"}),
    "consumed oddly": results(consumedCapacity={"a b": "1"}),
    "consumed text": results(consumedCapacity={"mem": "x"}),
    "a configuration": {"allocation": {"devices": {"results": [RESULT], "config": [{"source": "FromClass", "requests": ["r"], "opaque": OPAQUE}]}}},
    "reserved": {"allocation": ALLOCATION, "reservedFor": [USER]},
    "a report": reported(conditions=[CONDITION], data={"x": 1}),
    "a report of a flag": reported(data={"x": True}),
    "a report of a number": reported(data={"x": 1}),
    "text for data": reported(data="x"),
    "an unknown field": results(bar=2),
}  # fmt: skip


def _status() -> Iterator[Ask]:
    claim = doc(API, "ResourceClaim", "free", spec={"devices": {"requests": [EXACT]}})
    for name, status in (("free", None), ("told", STATUSES["a report"])):
        made = {**claim, "metadata": {"name": name}}
        yield post(f"{name}: create", DEVICE_CLAIMS, {**made, "status": {"reservedFor": [USER]}})
        where = f"{DEVICE_CLAIMS}/{name}"
        if status is not None:
            yield put(f"{name}: status", f"{where}/status", packed({**made, "status": status}))
        for title, value in STATUSES.items():
            # Where an allocation would change, the message shows it as a Go struct.
            head = name != "free"
            change = {"status": value, "spec": {"devices": {}}, "metadata": {"labels": {"a": "b"}}}
            yield put(
                f"{name}: put {title}", f"{where}/status?dryRun=All", {**made, "status": value}, head=head
            )
            yield patch(
                f"{name}: merge {title}", f"{where}/status?dryRun=All&fieldValidation=Warn", change, head=head
            )
            yield patch(
                f"{name}: apply {title}",
                f"{where}/status?dryRun=All&fieldManager=me&force=true",
                {**made, "status": value},
                APPLY,
                head=head,
            )
            if value:
                yield patch(
                    f"{name}: strategic {title}",
                    f"{where}/status?dryRun=All",
                    {"status": value},
                    STRATEGIC,
                    head=head,
                )
        yield patch(f"{name}: not reserved any more", f"{where}/status", {"status": {"reservedFor": None}})
        yield patch(f"{name}: not allocated any more", f"{where}/status", {"status": {"allocation": None}})
    yield get("table", DEVICE_CLAIMS, accept=TABLE)


CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "device-claims": (*kinds(_claims(), immutable=("claim", "template")), *_immutable()),
    "device-classes": tuple(kinds(_classes())),
    "devices-of-slices": tuple(kinds(_slices())),
    "device-status": tuple(_status()),
}
