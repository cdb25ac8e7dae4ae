"""Services of one and of two IP families: a real kube-apiserver and the embedded one give them the same families, policies and addresses.

Each row is a Service that is created and then patched; what is compared is the families, the policy and the family of each cluster IP,
or the error.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from steersman.api.errors import ApiError
from steersman.api.kinds.services import SERVICES
from steersman.client.api import Api
from steersman.sim.world import World
from tests.harness.envtest import RealPlane

SINGLE = "10.0.0.0/24"
DUAL = "10.0.0.0/24,fd00:10:96::/112"
DUAL_SIX = "fd00:10:96::/112,10.0.0.0/24"
PREFER, REQUIRE, ONE = (
    {"ipFamilyPolicy": name} for name in ("PreferDualStack", "RequireDualStack", "SingleStack")
)
BOTH, SIX, SIX_FIRST = ({"ipFamilies": names} for names in (["IPv4", "IPv6"], ["IPv6"], ["IPv6", "IPv4"]))
NAMED = {"type": "ExternalName", "externalName": "example.com"}
HEADLESS = {"clusterIP": "None"}
FREE = {"selector": None}
"""Without a selector."""

ADDRESS = re.compile(r"10\.0\.0\.\d+|fd00:[0-9a-f:]*[0-9a-f]")

ROWS: dict[str, tuple[dict[str, Any], ...]] = {
    "nothing asked for": ({},),
    "prefer": (PREFER,),
    "require": (REQUIRE,),
    "single": (ONE,),
    "ipv6": (SIX,),
    "ipv6 preferred": ({**PREFER, **SIX},),
    "two families, no policy": (BOTH,),
    "two families, single": ({**BOTH, **ONE},),
    "two families, prefer": ({**BOTH, **PREFER},),
    "ipv6 first": ({**SIX_FIRST, **REQUIRE},),
    "an unknown family": ({"ipFamilies": ["IPv5"]},),
    "the same family twice": ({"ipFamilies": ["IPv4", "IPv4"]},),
    "an ipv4 address": ({"clusterIP": "10.0.0.77"},),
    "an ipv6 address": ({"clusterIP": "fd00:10:96::77"},),
    "an ipv6 address, prefer": ({"clusterIP": "fd00:10:96::78", **PREFER},),
    "two addresses": ({"clusterIP": "10.0.0.79", "clusterIPs": ["10.0.0.79", "fd00:10:96::79"], **PREFER},),
    "two addresses, single": ({"clusterIP": "10.0.0.80", "clusterIPs": ["10.0.0.80", "fd00:10:96::80"]},),
    "two addresses of one family": (
        {"clusterIP": "10.0.0.81", "clusterIPs": ["10.0.0.81", "10.0.0.82"], **PREFER},
    ),
    "a second address out of range": (
        {"clusterIP": "10.0.0.83", "clusterIPs": ["10.0.0.83", "fd00:10:97::1"], **REQUIRE},
    ),
    "an address of another family": ({"clusterIP": "10.0.0.84", **SIX},),
    "the last address of ipv6": ({"clusterIP": "fd00:10:96::ffff"},),
    "the network itself": ({"clusterIP": "fd00:10:96::"},),
    "headless": (HEADLESS,),
    "headless, prefer": ({**HEADLESS, **PREFER},),
    "headless without a selector": ({**HEADLESS, **FREE},),
    "headless without a selector, single": ({**HEADLESS, **FREE, **ONE},),
    "headless without a selector, ipv6": ({**HEADLESS, **FREE, **SIX},),
    "single becomes require": ({}, REQUIRE),
    "single becomes prefer": ({}, PREFER),
    "single becomes two families": ({}, {**BOTH, **PREFER}),
    "single becomes two families, no policy": ({}, BOTH),
    "single gets a second address": (
        {"clusterIP": "10.0.0.90"},
        {"clusterIPs": ["10.0.0.90", "fd00:10:96::90"], **REQUIRE},
    ),
    "two become single": (REQUIRE, ONE),
    "two lose a family without a policy": (REQUIRE, {"ipFamilies": ["IPv4"]}),
    "two change their order": ({**REQUIRE, **BOTH}, SIX_FIRST),
    "two become prefer": (REQUIRE, PREFER),
    "two and another label": (PREFER, {"sessionAffinity": "ClientIP"}),
    "a name becomes dual": (NAMED, {"type": "ClusterIP", "externalName": None, **PREFER}),
    "dual becomes a name": (REQUIRE, NAMED),
}


async def tell(api: Api) -> dict[str, list[Any]]:
    """What comes of each row."""
    told: dict[str, list[Any]] = {}
    for number, (title, (first, *patches)) in enumerate(ROWS.items()):
        name = f"row-{number}"
        body = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], **first},
        }
        seen = told[title] = [await outcome(api.create(SERVICES.untyped, "default", body))]
        for patch in patches:
            seen.append(await outcome(api.patch(SERVICES.untyped, "default", name, {"spec": patch})))
        # Its addresses are free for the next one.
        await outcome(api.delete(SERVICES.untyped, "default", name))
    return told


async def outcome(request: Any) -> Any:
    try:
        found = await request
    except ApiError as error:
        return error.code, ADDRESS.sub("ADDRESS", error.message)
    spec = found["spec"] if isinstance(found, dict) and "spec" in found else {}
    ips = spec.get("clusterIPs", [])
    return (
        spec.get("ipFamilyPolicy"),
        spec.get("ipFamilies"),
        [ip if ip == "None" else f"IPv{ip_address(ip).version}" for ip in ips],
        spec.get("clusterIP") == (ips[0] if ips else None),
    )


@pytest.fixture(scope="module", params=[SINGLE, DUAL, DUAL_SIX])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[dict[str, list[Any]], dict[str, list[Any]]]]:
    """What the embedded server and the real one say, with these ranges."""
    with World(service_cidr=request.param) as world:
        ours = world.run(tell(world.api()))

    async def ask(plane: RealPlane) -> dict[str, list[Any]]:
        async with plane.connect() as api:
            return await tell(api)

    with RealPlane.start(apiserver=(f"--service-cluster-ip-range={request.param}",)) as plane:
        yield ours, asyncio.run(ask(plane))


@pytest.mark.parametrize("title", ROWS)
def test_both_servers_give_a_service_the_same_families(
    both: tuple[dict[str, list[Any]], dict[str, list[Any]]], title: str
) -> None:
    ours, real = both
    assert ours[title] == real[title]
