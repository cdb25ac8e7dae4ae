"""The provider ``local``: addresses from pools, which are never given twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.cloud import CloudError, Route
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import LoadBalancerStatus, Service, ServiceSpec, ServiceStatus
from steersman.cloud.local import LocalProvider, from_config, parse_pool


class Objects:
    """The cached objects of a cluster."""

    def __init__(self) -> None:
        self.known: dict[str, Service] = {}

    def services(self) -> Iterable[Service]:
        return self.known.values()

    def nodes(self) -> Iterable[Node]:
        return ()


def service(name: str, **spec: Any) -> Service:
    return Service(
        metadata=ObjectMeta(name=name, namespace="d", uid=name), spec=ServiceSpec(type="LoadBalancer", **spec)
    )


class Desk:
    """A provider, and Services whose status follows what it answers."""

    def __init__(self, *pools: str) -> None:
        self.objects = Objects()
        self.pools = pools
        self.restart()

    def restart(self) -> None:
        self.provider = LocalProvider(self.pools)
        self.provider.initialize(self.objects)

    def ensure(self, one: Service, *, written: bool = True) -> list[str]:
        one = self.objects.known.setdefault(one.metadata.uid, one)
        status = asyncio.run(self.provider.load_balancers.ensure("c", one, ()))
        if written:
            self.objects.known[one.metadata.uid] = replace(one, status=ServiceStatus(loadBalancer=status))
        return [ingress.ip for ingress in status.ingress]

    def delete(self, uid: str, *, cleaned: bool = True) -> None:
        gone = self.objects.known.pop(uid)
        if cleaned:
            asyncio.run(self.provider.load_balancers.ensure_deleted("c", gone))

    def get(self, uid: str) -> LoadBalancerStatus | None:
        return asyncio.run(self.provider.load_balancers.get("c", self.objects.known[uid]))


def test_each_service_has_the_lowest_free_address() -> None:
    desk = Desk("192.0.2.0/29")
    assert [desk.ensure(service(name)) for name in "abc"] == [["192.0.2.1"], ["192.0.2.2"], ["192.0.2.3"]]
    desk.delete("b")
    assert desk.ensure(service("d")) == ["192.0.2.2"]
    assert desk.ensure(service("a")) == ["192.0.2.1"], "the same again"


def test_a_pool_can_be_used_up_and_says_so() -> None:
    desk = Desk("192.0.2.10-192.0.2.11")
    assert [desk.ensure(service(name)) for name in "ab"] == [["192.0.2.10"], ["192.0.2.11"]]
    with pytest.raises(CloudError, match="no free IPv4 address in the pools"):
        desk.ensure(service("c"))
    with pytest.raises(CloudError, match="no pool has IPv6 addresses"):
        desk.ensure(service("d", ipFamilies=("IPv6",)))


def test_both_families_get_an_address_where_there_are_pools_of_both() -> None:
    both = {"ipFamilies": ("IPv4", "IPv6")}
    desk = Desk("192.0.2.0/24", "2001:db8::/120")
    assert desk.ensure(service("a", **both)) == ["192.0.2.1", "2001:db8::1"]
    single = Desk("192.0.2.0/24")
    assert single.ensure(service("a", **both, ipFamilyPolicy="PreferDualStack")) == ["192.0.2.1"]
    with pytest.raises(CloudError, match="IPv6"):
        single.ensure(service("b", **both, ipFamilyPolicy="RequireDualStack"))


def test_an_address_can_be_asked_for() -> None:
    desk = Desk("192.0.2.0/24")
    assert desk.ensure(service("a", loadBalancerIP="192.0.2.77")) == ["192.0.2.77"]
    with pytest.raises(CloudError, match=r"loadBalancerIP 192.0.2.77 is in use by Service d/a"):
        desk.ensure(service("b", loadBalancerIP="192.0.2.77"))
    with pytest.raises(CloudError, match=r"loadBalancerIP 10.0.0.1 is in no pool"):
        desk.ensure(service("c", loadBalancerIP="10.0.0.1"))
    with pytest.raises(CloudError, match="nonsense is in no pool"):
        desk.ensure(service("d", loadBalancerIP="nonsense"))


def test_addresses_outlive_the_process_in_the_status_of_services() -> None:
    desk = Desk("192.0.2.0/24")
    for name in "ab":
        desk.ensure(service(name))
    desk.delete("a")
    desk.restart()
    assert desk.ensure(service("c")) == ["192.0.2.1"]
    assert desk.ensure(service("b")) == ["192.0.2.2"], "it keeps its address"
    assert desk.get("b") is not None


def test_an_address_whose_service_went_unnoticed_is_free_again() -> None:
    desk = Desk("192.0.2.0/24")
    desk.ensure(service("a"))
    desk.delete("a", cleaned=False)
    assert desk.ensure(service("b")) == ["192.0.2.1"]


def test_an_address_that_is_not_in_a_pool_any_more_is_replaced() -> None:
    desk = Desk("192.0.2.0/24")
    desk.ensure(service("a"))
    desk.pools = ("198.51.100.0/24",)
    desk.restart()
    assert desk.get("a") is None
    assert desk.ensure(service("a")) == ["198.51.100.1"]


@given(
    st.lists(
        st.tuples(st.sampled_from(("ensure", "unwritten", "delete", "restart")), st.sampled_from("abcdef")),
        max_size=40,
    )
)
def test_no_address_is_ever_given_twice(steps: list[tuple[str, str]]) -> None:
    desk = Desk("192.0.2.0/28")
    held: dict[str, str] = {}
    for step, name in steps:
        match step:
            case "ensure":
                (held[name],) = desk.ensure(service(name))
            case "unwritten":
                # The manager ends before it writes the status: a Service that had an address keeps it.
                (now,) = desk.ensure(service(name), written=False)
                assert held.get(name, now) == now
                desk.restart()
            case "delete" if name in desk.objects.known:
                desk.delete(name)
                held.pop(name, None)
            case "restart":
                desk.restart()
        assert len(set(held.values())) == len(held), steps


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("192.0.2.0/24", "192.0.2.1", "192.0.2.254"),
        ("192.0.2.4/31", "192.0.2.4", "192.0.2.5"),
        ("192.0.2.7/32", "192.0.2.7", "192.0.2.7"),
        ("192.0.2.1-192.0.2.3", "192.0.2.1", "192.0.2.3"),
        (" 192.0.2.1 - 192.0.2.3 ", "192.0.2.1", "192.0.2.3"),
        ("2001:db8::/126", "2001:db8::1", "2001:db8::3"),
    ],
)
def test_a_pool_is_a_cidr_or_a_range(text: str, first: str, last: str) -> None:
    pool = parse_pool(text)
    assert (str(pool.first), str(pool.last)) == (first, last)


@pytest.mark.parametrize(
    "text", ["", "x", "192.0.2.1", "192.0.2.9-192.0.2.1", "192.0.2.1-2001:db8::1", "1/2/3"]
)
def test_nonsense_is_no_pool(text: str) -> None:
    with pytest.raises(ValueError, match="range such as"):
        parse_pool(text)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "it needs a file with `pools"),
        (b"", "must have a list `pools`"),
        (b"[", "no YAML"),
        (b"pools: []", "must have a list `pools`"),
        (b"pools: [1]", "must have a list `pools`"),
        (b"pools: [192.0.2.0/24]\nspeed: 1", "unknown field 'speed'"),
        (b"pools: [x]", "neither a CIDR nor a range"),
    ],
)
def test_a_configuration_with_a_mistake_is_refused(config: bytes | None, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        from_config(config)
    assert "\n" not in str(caught.value)


def test_routes_are_a_table_and_nodes_are_instances() -> None:
    provider = from_config(b"pools: [192.0.2.0/24]")
    assert provider.routes is not None
    asyncio.run(provider.routes.create("c", "hint", Route("10.0.0.0/24", "n")))
    (made,) = asyncio.run(provider.routes.list("c"))
    assert (made.name, made.enable_node_addresses) == ("c-hint-10.0.0.0/24", True)
    asyncio.run(provider.routes.delete("c", made))
    assert asyncio.run(provider.routes.list("c")) == ()
    assert provider.instances is not None
    assert asyncio.run(provider.instances.exists(Node()))
    assert not asyncio.run(provider.instances.is_shut_down(Node()))
