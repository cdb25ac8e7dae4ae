"""Subsets of Endpoints: upstream's rows for repacking, comparison and truncation, and its order by hash."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.generated import core_v1
from steersman.api.kinds import ObjectReference
from steersman.api.kinds.services import EndpointAddress, EndpointsPort, EndpointSubset
from steersman.controllers.shared.endpoint_subsets import (
    MAX_CAPACITY,
    MAX_HASHED,
    Subsets,
    equal_subsets,
    repack_subsets,
    sort_subsets,
    truncate,
)


def subset(text: str) -> EndpointSubset:
    """A subset: ``1.2.3.4 5.6.7.8@uid !9.9.9.9 | 80 81`` has two ready addresses, one that is not, and two ports."""
    addresses, _, ports = text.partition("|")
    words = addresses.split()
    return EndpointSubset(
        addresses=tuple(address(word) for word in words if word[0] != "!"),
        notReadyAddresses=tuple(address(word[1:]) for word in words if word[0] == "!"),
        ports=tuple(EndpointsPort(port=int(port)) for port in ports.split()),
    )


def address(word: str) -> EndpointAddress:
    ip, at, uid = word.partition("@")
    return EndpointAddress(ip=ip, targetRef=ObjectReference(uid=uid) if at else None)


def subsets(*texts: str) -> Subsets:
    return tuple(map(subset, texts))


REPACKED: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = (
    (("|",), ()),
    (("| 111",), ()),
    (("1.2.3.4 |",), ("1.2.3.4 |",)),
    (("!1.2.3.4 |",), ("!1.2.3.4 |",)),
    (("1.2.3.4 | 111",), ("1.2.3.4 | 111",)),
    (("beef::1:2:3:4 | 111",), ("beef::1:2:3:4 | 111",)),
    (("!1.2.3.4 | 111",), ("!1.2.3.4 | 111",)),
    (("1.2.3.4@uid-1 | 111",), ("1.2.3.4@uid-1 | 111",)),
    (("!1.2.3.4@uid-1 | 111",), ("!1.2.3.4@uid-1 | 111",)),
    (("1.2.3.4@ | 111",), ("1.2.3.4@ | 111",)),
    (("!1.2.3.4@ | 111",), ("!1.2.3.4@ | 111",)),
    (("1.2.3.4 5.6.7.8 | 111",), ("1.2.3.4 5.6.7.8 | 111",)),
    (("1.2.3.4 !5.6.7.8 | 111",), ("1.2.3.4 !5.6.7.8 | 111",)),
    (("1.2.3.4 !1.2.3.4 | 111",), ("!1.2.3.4 | 111",)),
    (("1.2.3.4 | 111 222",), ("1.2.3.4 | 111 222",)),
    (("1.2.3.4 1.2.3.4 | 111",), ("1.2.3.4 | 111",)),
    (("beef::1 beef::1 | 111",), ("beef::1 | 111",)),
    (("1.2.3.4 | 111 111",), ("1.2.3.4 | 111",)),
    (("1.2.3.4 | 111", "1.2.3.4 | 111"), ("1.2.3.4 | 111",)),
    (("1.2.3.4 | 111", "!1.2.3.4 | 111"), ("!1.2.3.4 | 111",)),
    (("1.2.3.4 | 111", "1.2.3.4 | 222"), ("1.2.3.4 | 111 222",)),
    (("1.2.3.4@uid-1 | 111", "1.2.3.4@uid-1 | 222"), ("1.2.3.4@uid-1 | 111 222",)),
    (("1.2.3.4@uid-1 | 111", "!1.2.3.4@uid-1 | 222"), ("1.2.3.4@uid-1 | 111", "!1.2.3.4@uid-1 | 222")),
    (("1.2.3.4 | 111", "5.6.7.8 | 111"), ("1.2.3.4 5.6.7.8 | 111",)),
    (("1.2.3.4@uid-1 | 111", "1.2.3.4@uid-2 | 111"), ("1.2.3.4@uid-1 1.2.3.4@uid-2 | 111",)),
    (("1.2.3.4 | 111", "1.2.3.4@uid-2 | 111"), ("1.2.3.4 1.2.3.4@uid-2 | 111",)),
    (
        ("5.6.7.8 | 111", "5.6.7.8@uid-1 | 111", "1.2.3.4@uid-1 | 111", "1.2.3.4 | 111"),
        ("1.2.3.4 1.2.3.4@uid-1 5.6.7.8 5.6.7.8@uid-1 | 111",),
    ),
    (
        ("5.6.7.8 | 111", "!5.6.7.8@uid-1 | 111", "!1.2.3.4@uid-1 | 111", "!1.2.3.4 | 111"),
        ("5.6.7.8 !1.2.3.4 !1.2.3.4@uid-1 !5.6.7.8@uid-1 | 111",),
    ),
    (("1.2.3.4 | 111", "5.6.7.8 | 222"), ("1.2.3.4 | 111", "5.6.7.8 | 222")),
    (
        ("1.2.3.4 | 111", "1.2.3.5 | 222", "1.2.3.6 | 111", "1.2.3.5 | 333"),
        ("1.2.3.4 1.2.3.6 | 111", "1.2.3.5 | 222 333"),
    ),
    (
        ("1.2.3.4 | 111", "!1.2.3.5 | 222", "1.2.3.6 | 111", "!1.2.3.5 | 333"),
        ("1.2.3.4 1.2.3.6 | 111", "!1.2.3.5 | 222 333"),
    ),
)
"""Upstream's TestPackSubsets."""


@pytest.mark.parametrize(("given", "repacked"), REPACKED)
def test_subsets_are_repacked_by_their_addresses(given: tuple[str, ...], repacked: tuple[str, ...]) -> None:
    found = repack_subsets(subsets(*given))
    assert found == sort_subsets(subsets(*repacked))
    assert repack_subsets(found) == found


def test_of_two_entries_of_an_address_the_first_stays() -> None:
    first, second = (
        EndpointAddress(ip="1.2.3.4", targetRef=ObjectReference(name=name)) for name in ("foo", "bar")
    )
    ports = (EndpointsPort(port=111),)
    assert repack_subsets([EndpointSubset(addresses=(first, second), ports=ports)]) == (
        EndpointSubset(addresses=(first,), ports=ports),
    )
    mixed = EndpointSubset(addresses=(first,), notReadyAddresses=(second,), ports=ports)
    assert repack_subsets([mixed]) == (EndpointSubset(notReadyAddresses=(first,), ports=ports),)


def test_the_order_is_that_of_upstreams_hashes() -> None:
    """The expected order was computed by upstream's RepackSubsets."""
    pod = EndpointAddress(
        ip="1.2.3.4",
        hostname="h",
        nodeName="n",
        targetRef=ObjectReference(kind="Pod", namespace="d", name="p", uid="u"),
    )
    other, late = EndpointAddress(ip="1.2.3.5"), EndpointAddress(ip="1.2.3.9")
    a = EndpointsPort(name="a", port=80, protocol="TCP", appProtocol="http")
    b = EndpointsPort(name="b", port=81, protocol="TCP")
    c = EndpointsPort(name="c", port=82, protocol="UDP")
    x = EndpointsPort(name='x "é', port=3)
    found = repack_subsets(
        [
            EndpointSubset(addresses=(pod, other), ports=(a, b, c)),
            EndpointSubset(notReadyAddresses=(late,), ports=(b, x)),
            subset("1.2.3.4 |"),
        ]
    )
    assert found == (
        EndpointSubset(addresses=(pod, other), ports=(a, c)),
        EndpointSubset(addresses=(pod, other), notReadyAddresses=(late,), ports=(b,)),
        subset("1.2.3.4 |"),
        EndpointSubset(notReadyAddresses=(late,), ports=(x,)),
    )


def test_many_addresses_are_not_hashed_and_are_in_a_fixed_order() -> None:
    addresses = tuple(EndpointAddress(ip=f"10.0.{i // 256}.{i % 256}") for i in range(MAX_HASHED + 1))
    large = [
        EndpointSubset(addresses=addresses[1:], ports=(EndpointsPort(port=1),)),
        EndpointSubset(addresses=addresses, ports=(EndpointsPort(port=2),)),
    ]
    assert repack_subsets(large) == repack_subsets(reversed(large))


# -- comparison -------------------------------------------------------------------------------


def _subset(number: int, version: str, port: int, ip: str = "", not_ready_ip: str = "") -> EndpointSubset:
    def pod(name: str, ip: str, namespace: str) -> EndpointAddress:
        reference = ObjectReference(kind="Pod", name=name, namespace=namespace, resourceVersion=version)
        return EndpointAddress(ip=ip, targetRef=reference)

    return EndpointSubset(
        addresses=(pod(f"pod{number}-1", ip or f"{number}.{number}.{number}.1", "ns"),),
        notReadyAddresses=(pod(f"pod{number}-2", not_ready_ip or f"{number}.{number}.{number}.2", "ns2"),),
        ports=(EndpointsPort(port=port, protocol="TCP"),),
    )


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        ((_subset(1, "", 8081),), False),
        ((_subset(1, "", 8081, ip="1.1.1.10"), _subset(2, "", 8082)), False),
        ((_subset(1, "", 8081), _subset(2, "", 8082, not_ready_ip="2.2.2.10")), False),
        ((_subset(1, "", 8081), _subset(2, "100", 8082)), True),
        ((_subset(1, "", 8081), _subset(2, "", 8082)), True),
        ((_subset(1, "", 8081), _subset(1, "", 8082)), False),
    ],
    ids=["removed", "ready IP", "not ready IP", "version changed", "version removed", "ports"],
)
def test_resource_versions_of_pods_make_no_difference(other: Subsets, equal: bool) -> None:
    """Upstream's TestEndpointSubsetsEqualIgnoreResourceVersion."""
    wanted = sort_subsets((_subset(1, "", 8081), _subset(2, "", 8082)))
    assert equal_subsets(other, wanted) is equal


def test_the_order_makes_no_difference() -> None:
    wanted = repack_subsets(subsets("1.2.3.4 1.2.3.5 | 80 81", "1.2.3.6 | 80"))
    unsorted = tuple(
        replace(one, addresses=one.addresses[::-1], ports=one.ports[::-1]) for one in reversed(wanted)
    )
    assert unsorted != wanted
    assert equal_subsets(unsorted, wanted)


def test_objects_of_the_in_process_server_are_compared_by_their_fields() -> None:
    wanted = sort_subsets((_subset(1, "", 8081),))
    stored = msgspec.convert(msgspec.to_builtins(wanted), tuple[core_v1.EndpointSubset, ...])
    assert equal_subsets(stored, wanted)  # type: ignore[arg-type]
    assert not equal_subsets(stored, sort_subsets((_subset(1, "", 8082),)))  # type: ignore[arg-type]


# -- capacity ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ready", "not_ready", "ready_left", "not_ready_left"),
    [
        ((), (), (), ()),
        (
            (50, 100, 100, 100, 100),
            (50, 100, 100, 100, 100),
            (50, 100, 100, 100, 100),
            (50, 100, 100, 100, 100),
        ),
        ((100,) * 5, (100,) * 5, (100,) * 5, (100,) * 5),
        ((90, 110, 50, 10, 20), (101, 200, 200, 201, 298), (90, 110, 50, 10, 20), (73, 144, 144, 145, 214)),
        ((205, 400, 402, 400, 693), (100, 200, 200, 200, 300), (98, 191, 192, 191, 328), (0,) * 5),
    ],
)
def test_subsets_are_truncated_in_proportion(
    ready: Sequence[int],
    not_ready: Sequence[int],
    ready_left: Sequence[int],
    not_ready_left: Sequence[int],
) -> None:
    """Upstream's TestTruncateEndpoints."""
    none = EndpointAddress()
    given = tuple(
        EndpointSubset(addresses=(none,) * a, notReadyAddresses=(none,) * b)
        for a, b in zip(ready, not_ready, strict=True)
    )
    found, truncated = truncate(given)
    assert [len(one.addresses) for one in found] == list(ready_left)
    assert [len(one.notReadyAddresses) for one in found] == list(not_ready_left)
    assert truncated == (sum(ready) + sum(not_ready) > MAX_CAPACITY)
