"""Claims for devices, told to kube-scheduler and to the simulated scheduler on real API servers: both allocate and say the same."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.generated import load
from steersman.client.api import Api
from tests.harness.devices import DRIVER, alternative, everything, exactly, first
from tests.harness.envtest import SCHEDULER
from tests.harness.schedulers import (
    BOUND,
    OURS,
    REFUSED,
    Ending,
    both_endings,
    create_nodes,
    event_text,
    pod_outcome,
    told,
)

CLAIMS = load("resource.k8s.io", "v1", "ResourceClaim").untyped
SLICES = load("resource.k8s.io", "v1", "ResourceSlice").untyped
CLASSES = load("resource.k8s.io", "v1", "DeviceClass").untyped
PODS = load("", "v1", "Pod").untyped
EVENTS = load("", "v1", "Event").untyped
DOMAIN = f'device.attributes["{DRIVER}"]'
LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("16Gi")) >= 0'
TOLERATED = {"tolerations": [{"key": "old", "operator": "Exists"}]}


def device(name: str, memory: str, index: int, **more: Any) -> dict[str, Any]:
    attributes = {
        "index": {"int": index},
        "pair": {"int": index // 2},
        "release": {"version": f"1.{index}.0"},
    }
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **more}


def published(name: str, *devices: dict[str, Any], **where: Any) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "devices": list(devices), **where}
    return {"metadata": {"name": name}, "spec": spec}


ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
TAINT = {"taints": [{"key": "old", "value": "yes", "effect": "NoSchedule"}]}
DEVICES = (
    published("one", *(device(f"d{n}", "8Gi" if n < 2 else "32Gi", n) for n in range(6)), nodeName="one"),
    published(
        "net",
        device("n0", "8Gi", 0),
        device("n1", "8Gi", 1, **TAINT),
        nodeSelector={"nodeSelectorTerms": [ZONE]},
    ),
)
LOCAL = f'device.driver == "{DRIVER}" && has({DOMAIN}.index)'
FIRST = f"{DOMAIN}.index == 0"
CONFIG = {"opaque": {"driver": DRIVER, "parameters": {"mode": "shared"}}}
STORY: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    # The name of a claim and its pod, how the pod ends, the claim's devices, and the pod's spec.
    ("plain", BOUND, {"requests": [exactly()]}, {"nodeSelector": {"name": "one"}}),
    ("large", BOUND, {"requests": [exactly("r", 1, LARGE)]}, {}),
    (
        "pair",
        BOUND,
        {"requests": [exactly("r", 2)], "constraints": [{"matchAttribute": f"{DRIVER}/pair"}]},
        {"nodeSelector": {"name": "one"}},
    ),
    (
        "either",
        BOUND,
        {
            "requests": [
                first(
                    "r",
                    alternative("many", 9),
                    alternative("version", 1, f'{DOMAIN}.release.isGreaterThan(semver("1.2.9"))'),
                )
            ],
            "config": [{**CONFIG, "requests": ["r/version"]}, {**CONFIG, "requests": ["r/many"]}],
        },
        {"nodeSelector": {"name": "one"}},
    ),
    (
        "tolerant",
        BOUND,
        {"requests": [exactly("r", 1, f"{DOMAIN}.index == 1", **TOLERATED)]},
        {"nodeSelector": {"name": "two"}},
    ),
    (
        "tainted",
        REFUSED,
        {"requests": [exactly("r", 1, f"{DOMAIN}.index == 1")]},
        {"nodeSelector": {"name": "two"}},
    ),
    ("many", REFUSED, {"requests": [exactly("r", 7)]}, {}),
    ("all", REFUSED, {"requests": [everything()]}, {}),
    ("classless", REFUSED, {"requests": [exactly("r", 1, deviceClassName="none")]}, {}),
    ("failing", REFUSED, {"requests": [exactly("r", 1, f"{DOMAIN}.nothing == 1")]}, {}),
    (
        "distinct",
        REFUSED,
        {"requests": [exactly("r", 3)], "constraints": [{"distinctAttribute": f"{DRIVER}/pair"}]},
        {"nodeSelector": {"name": "one"}},
    ),
)


def pod(name: str, claim: str, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "app:1", "resources": {"claims": [{"name": "c"}]}}
    body = {
        "containers": [main],
        "resourceClaims": [{"name": "c", "resourceClaimName": claim}],
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        **spec,
    }
    return {"metadata": {"name": name}, "spec": body}


async def tell(api: Api, namespace: str = "default") -> Ending:
    """The story, and what is left of it."""
    await create_nodes(api, "zone", {"one": "a", "two": "a", "three": "b"})
    spec = {"selectors": [{"cel": {"expression": LOCAL}}], "config": [CONFIG]}
    await api.create(CLASSES, "", {"metadata": {"name": "gpu"}, "spec": spec})
    for each in DEVICES:
        await api.create(SLICES, "", each)
    for name, end, devices, more in STORY:
        await api.create(CLAIMS, namespace, {"metadata": {"name": name}, "spec": {"devices": devices}})
        await api.create(PODS, namespace, pod(name, name, **more))
        await told(api, name, end)
    await api.create(PODS, namespace, pod("shared", "plain"))
    await told(api, "shared", BOUND)
    await api.create(PODS, namespace, pod("elsewhere", "plain", nodeSelector={"name": "three"}))
    await told(api, "elsewhere", REFUSED)
    await api.create(PODS, namespace, pod("early", "later"))
    pods = (await api.list(PODS, namespace)).items
    uids = {each["metadata"]["uid"]: each["metadata"]["name"] for each in pods if isinstance(each, dict)}
    claims = (await api.list(CLAIMS, namespace)).items
    events = (await api.list(EVENTS, namespace)).items
    return {
        "claims": {each["metadata"]["name"]: _claim(each, uids) for each in claims if isinstance(each, dict)},
        "pods": {each["metadata"]["name"]: pod_outcome(each) for each in pods if isinstance(each, dict)},
        # The API server itself tells of its own Service, now and then.
        "events": sorted(
            {
                event_text(each)
                for each in events
                if isinstance(each, dict) and each["involvedObject"]["kind"] != "Service"
            }
        ),
    }


def _claim(found: dict[str, Any], uids: dict[str, str]) -> dict[str, Any]:
    status = dict(found.get("status", {}))
    if "allocation" in status:
        assert status["allocation"].pop("allocationTimestamp")
    status["reservedFor"] = [{**each, "uid": uids[each["uid"]]} for each in status.get("reservedFor", ())]
    return {"finalizers": found["metadata"].get("finalizers"), "status": status}


@pytest.fixture(scope="module")
def ends() -> dict[str, Ending]:
    return both_endings(tell, dynamic_resources=True)


@pytest.mark.parametrize(("name", "end"), [(name, end) for name, end, *_ in STORY])
def test_both_allocate_the_same_devices(ends: dict[str, Ending], name: str, end: str) -> None:
    assert ("allocation" in ends[SCHEDULER]["claims"][name]["status"]) == (end == BOUND)
    assert ends[OURS]["claims"][name] == ends[SCHEDULER]["claims"][name]


@pytest.mark.parametrize("name", [*(name for name, *_ in STORY), "shared", "elsewhere", "early"])
def test_both_say_the_same_of_a_pod(ends: dict[str, Ending], name: str) -> None:
    assert ends[OURS]["pods"][name] == ends[SCHEDULER]["pods"][name]


def test_both_record_the_same_events(ends: dict[str, Ending]) -> None:
    assert ends[OURS]["events"] == ends[SCHEDULER]["events"]
