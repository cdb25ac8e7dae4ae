"""ServiceCIDRs on a real API server: steersman and kube-controller-manager protect the same ranges, with the same words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.conditions import find_condition
from steersman.api.errors import Invalid
from steersman.api.kinds.services import SERVICECIDRS, SERVICES, ServiceCIDR
from tests.harness.follow import gone

Document = dict[str, Any]
PATIENCE = 75.0


def cidr(name: str, *ranges: str) -> Document:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": name},
        "spec": {"cidrs": list(ranges)},
    }


def service(name: str, ip: str) -> Document:
    spec = {"clusterIP": ip, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def ready(status: str) -> Callable[[ServiceCIDR], bool]:
    def met(found: ServiceCIDR) -> bool:
        condition = find_condition(found.status.conditions, "Ready")
        return condition is not None and condition.status == status and bool(found.metadata.finalizers)

    return met


async def removed(stage: Any, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        await gone(stage.api, SERVICECIDRS, "", name)


async def allocate(stage: Any, name: str, ip: str) -> None:
    """Create a Service with an address of a range that API servers learn about with a delay."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await stage.create(SERVICES, service(name, ip))
                return
            except Invalid:
                await asyncio.sleep(0.1)


async def conditions(stage: Any) -> Document:
    """What each range says of itself, but when."""
    page = await stage.api.list(SERVICECIDRS.untyped, "")
    return {
        one["metadata"]["name"]: [
            {key: value for key, value in condition.items() if key != "lastTransitionTime"}
            for condition in one.get("status", {}).get("conditions", ())
        ]
        for one in page.items
    }


async def tell(stage: Any) -> Document:
    await stage.create(
        SERVICECIDRS,
        cidr("wide", "192.168.48.0/20", "fd00:48::/112"),
        cidr("narrow", "192.168.50.0/28"),
        cidr("apart", "192.168.90.0/24"),
    )
    for name in ("kubernetes", "wide", "narrow", "apart"):
        await stage.until(SERVICECIDRS, name, ready("True"))
    await allocate(stage, "inside", "192.168.50.3")
    await allocate(stage, "beside", "192.168.51.3")
    await allocate(stage, "apart", "192.168.90.3")
    begun = await conditions(stage)
    # Another range has the addresses of the first; the others have addresses of their own.
    # Of two ranges that are deleted at once, the reference manager may let both go.
    await stage.api.delete(SERVICECIDRS, "", "narrow")
    await removed(stage, "narrow")
    for name in ("wide", "apart"):
        await stage.api.delete(SERVICECIDRS, "", name)
    for name in ("wide", "apart"):
        await stage.until(SERVICECIDRS, name, ready("False"))
    blocked = await conditions(stage)
    # One goes when its last address is free, one when a new range has its addresses.
    await stage.api.delete(SERVICES, stage.namespace, "apart")
    await stage.create(SERVICECIDRS, cidr("heir", "192.168.48.0/20", "fd00:48::/112"))
    for name in ("apart", "wide"):
        await removed(stage, name)
    await stage.until(SERVICECIDRS, "heir", ready("True"))
    await stage.quiet()
    return {"begun": begun, "blocked": blocked, "left": await conditions(stage)}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, "ranges", controllers=("service-cidr-controller",), kinds=(SERVICECIDRS,)
    )
    return found


def test_a_range_stays_while_its_addresses_are_nowhere_else(ends: dict[str, dict[str, Any]]) -> None:
    end = ends["steersman"]
    assert end["begun"]["wide"] == [
        {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
    ]
    assert end["blocked"].keys() == {"kubernetes", "wide", "apart"}
    assert [one["reason"] for one in end["blocked"]["wide"]] == ["Terminating"]
    assert end["left"].keys() == {"kubernetes", "heir"}


@pytest.mark.parametrize("what", ["servicecidrs", "begun", "blocked", "left"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


def test_neither_manager_has_events(ends: dict[str, dict[str, Any]]) -> None:
    for end in ends.values():
        # The API server has events of its own.
        assert [one for one in end["events"] if one["source"] == "service-cidr-controller"] == []
