"""service-cidr-controller: upstream's rows, and ServiceCIDRs that come and go in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import NotFound, ServerError
from steersman.api.kinds import Condition, ObjectMeta
from steersman.api.kinds.services import (
    SERVICECIDRS,
    IPAddress,
    ServiceCIDR,
    ServiceCIDRSpec,
    ServiceCIDRStatus,
)
from steersman.api.scheme import Key
from steersman.controllers.servicecidr import (
    FINALIZER,
    GRACE_PERIOD,
    IN_USE,
    NAME,
    READY,
    can_delete,
    controller,
)
from steersman.intent.actions import Action, Emit, List, Patch, PatchType
from steersman.intent.controller import Change
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MANAGED = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}


def cidr(
    name: str, *ranges: str, deleted: datetime | None = None, finalizers: tuple[str, ...] = ()
) -> ServiceCIDR:
    return ServiceCIDR(
        metadata=ObjectMeta(name=name, deletionTimestamp=deleted, finalizers=finalizers),
        spec=ServiceCIDRSpec(cidrs=ranges),
    )


def ip(name: str, *, managed: bool = True) -> IPAddress:
    family = {"ipaddress.kubernetes.io/ip-family": "IPv6" if ":" in name else "IPv4"}
    return IPAddress(metadata=ObjectMeta(name=name, labels=family | (MANAGED if managed else {})))


DUAL = ("192.168.0.0/24", "2001:db2::/64")
DELETED = cidr("gone", *DUAL, deleted=NOW - GRACE_PERIOD - timedelta(seconds=1), finalizers=(FINALIZER,))
DELETING = cidr("going", *DUAL, deleted=NOW, finalizers=(FINALIZER,))


def look(name: str, *objects: Any, answers: Any = None) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, *objects), Key("", name))
    if seen is None:
        return [], Rest("gone")
    actions, verdict = walk(controller.decide(seen, NOW), answers)
    return [action for action in actions if not isinstance(action, List)], verdict


def condition_of(action: Action[Any]) -> dict[str, str]:
    assert isinstance(action, Patch)
    assert isinstance(action.body, dict)
    assert (action.type, action.subresource) == (PatchType.APPLY, "status")
    assert (action.field_manager, action.force) == (NAME, True)
    (found,) = action.body["status"]["conditions"]
    assert isinstance(found, dict)
    return found


# -- upstream's rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "objects", "subresources"),
    [
        ("", (), []),
        ("kubernetes", (cidr("kubernetes", *DUAL),), ["", "status"]),
        ("no-finalizer", (cidr("no-finalizer", *DUAL),), ["", "status"]),
        ("gone", (DELETED,), [""]),
        ("going", (DELETING,), []),
        ("gone", (DELETED, ip("192.168.0.1")), ["status"]),
        ("gone", (DELETED, cidr("same", *DUAL), ip("192.168.0.1")), [""]),
        ("gone", (DELETED, cidr("larger", "192.168.0.0/16", DUAL[1]), ip("192.168.0.1")), [""]),
        ("gone", (DELETED, cidr("apart", "192.168.255.0/26", DUAL[1]), ip("192.168.0.1")), ["status"]),
        ("gone", (DELETED, ip("2001:db2::1")), ["status"]),
        ("gone", (DELETED, cidr("same", *DUAL), ip("2001:db2::1")), [""]),
        ("gone", (DELETED, cidr("larger", "192.168.0.0/16", "2001:db2::/48"), ip("2001:db2::1")), [""]),
        (
            "gone",
            (DELETED, cidr("apart", "192.168.255.0/26", "2001:db2:a:b::/64"), ip("2001:db2::1")),
            ["status"],
        ),
    ],
)
def test_a_sync_patches_the_finalizer_or_the_status(
    name: str, objects: tuple[Any, ...], subresources: list[str]
) -> None:
    """Upstream's TestControllerSync."""
    actions, _ = look(name, *objects)
    assert [action.subresource for action in actions if isinstance(action, Patch)] == subresources
    assert len(actions) == len(subresources)


KUBERNETES = cidr("kubernetes", *DUAL)


@pytest.mark.parametrize(
    ("cidrs", "ips", "expected"),
    [
        ((), (), True),
        ((KUBERNETES,), (), True),
        ((KUBERNETES,), ("192.168.0.24",), False),
        ((KUBERNETES,), ("192.168.1.24",), True),
        ((KUBERNETES,), ("192.168.0.0",), True),
        ((KUBERNETES,), ("192.168.0.255",), True),
        ((KUBERNETES,), ("2001:0db2::ffff:ffff:ffff:ffff",), False),
        ((KUBERNETES, cidr("other", *DUAL)), ("192.168.0.23",), True),
        ((KUBERNETES, cidr("other", "192.168.0.0/26", DUAL[1])), ("192.168.0.23",), True),
        ((KUBERNETES, cidr("other", "192.168.0.0/28", DUAL[1])), ("192.168.0.23",), False),
        ((KUBERNETES, cidr("other", "192.168.0.0/16", DUAL[1])), ("192.168.0.23",), True),
        ((KUBERNETES, cidr("other", "nonsense")), ("192.168.0.23", "nonsense"), False),
    ],
)
def test_addresses_that_no_other_range_has_block_the_deletion(
    cidrs: tuple[ServiceCIDR, ...], ips: tuple[str, ...], expected: bool
) -> None:
    """Upstream's TestController_canDeleteCIDR, and malformed ranges."""
    assert can_delete(KUBERNETES, cidrs, map(ip, ips)) is expected


@pytest.mark.parametrize(
    ("deleted", "other", "expected"),
    [
        ("192.168.0.0/24", "192.168.0.0/16", True),
        ("192.168.0.0/16", "192.168.0.0/24", False),
        ("192.168.0.0/24", "192.168.0.0/24", False),
    ],
    ids=["narrower", "wider", "the same"],
)
def test_of_two_ranges_that_are_being_deleted_one_stays(deleted: str, other: str, expected: bool) -> None:
    one, two = cidr("a", deleted, deleted=NOW), cidr("b", other, deleted=NOW)
    assert can_delete(one, (one, two), (ip("192.168.0.24"),)) is expected
    assert can_delete(two, (one, two), (ip("192.168.0.24"),)) is not expected


def test_addresses_of_other_managers_block_nothing() -> None:
    assert can_delete(KUBERNETES, (KUBERNETES,), (ip("192.168.0.24", managed=False),))


UNRELATED = (("unrelated", "10.0.0.0/24"), ("unrelated2", "10.0.0.0/16"))
ONE = (("kubernetes", *DUAL), *UNRELATED)
TWO = (("kubernetes", *DUAL), ("overlapping", "192.168.0.0/24", "2001:db2::/96"), *UNRELATED)
THREE = (
    ("kubernetes", *DUAL),
    ("overlapping", *DUAL),
    ("overlapping2", "192.168.0.0/26", "2001:db2::/96"),
    *UNRELATED,
)


@pytest.mark.parametrize(
    ("cidrs", "address", "names"),
    [
        ((), "192.168.0.23", []),
        (ONE, "192.168.0.23", ["kubernetes"]),
        (TWO, "192.168.0.23", ["kubernetes", "overlapping"]),
        (THREE, "192.168.0.23", ["kubernetes", "overlapping", "overlapping2"]),
        (THREE, "192.168.0.0", []),
        (THREE, "192.168.0.63", ["kubernetes", "overlapping"]),
        (THREE, "2001:db2::", []),
        (THREE, "2001:0db2::ffff:ffff:ffff:ffff", ["kubernetes", "overlapping"]),
    ],
)
def test_an_address_enqueues_the_terminating_ranges_that_have_it(
    cidrs: tuple[tuple[str, ...], ...], address: str, names: list[str]
) -> None:
    """Upstream's TestController_ipToCidrs; others are not enqueued, because their rounds would find nothing to do."""
    caches = StaticCaches(controller, *(cidr(*each, deleted=NOW) for each in cidrs))
    to = controller.watches[1].to
    assert [key.name for key in to(caches, Change(None, ip(address)))] == names
    assert [key.name for key in to(caches, Change(ip(address), None))] == names
    assert list(to(caches, Change(ip(address), ip(address)))) == []
    assert list(to(caches, Change(None, ip(address, managed=False)))) == []
    lasting = StaticCaches(controller, *(cidr(*each) for each in cidrs))
    assert list(to(lasting, Change(None, ip(address)))) == []


@pytest.mark.parametrize(
    ("cidrs", "names"),
    [
        ((), []),
        (ONE, ["kubernetes"]),
        (TWO, ["kubernetes", "overlapping"]),
        (THREE, ["kubernetes", "overlapping", "overlapping2"]),
    ],
)
def test_a_new_range_enqueues_the_terminating_ranges_it_overlaps(
    cidrs: tuple[tuple[str, ...], ...], names: list[str]
) -> None:
    """Upstream's TestController_cidrToCidrs."""
    caches = StaticCaches(controller, *(cidr(*each, deleted=NOW) for each in cidrs))
    new = cidr("new", *DUAL)
    to = controller.watches[0].to
    assert [key.name for key in to(caches, Change(None, new))] == ["new", *names]
    assert [key.name for key in to(caches, Change(new, new))] == ["new"]
    assert [key.name for key in to(caches, Change(new, None))] == ["new"]


# -- what is written ------------------------------------------------------------------------------


def test_a_new_range_gets_its_finalizer_and_is_ready() -> None:
    (finalizer, status), verdict = look("kubernetes", KUBERNETES)
    assert finalizer == Patch(KUBERNETES, {"metadata": {"finalizers": [FINALIZER]}}, PatchType.STRATEGIC)
    assert condition_of(status) == {
        "type": "Ready",
        "status": "True",
        "reason": "",
        "message": READY,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    assert verdict == Rest("ServiceCIDR is ready")


def _with(given: ServiceCIDR, status: str, reason: str, message: str) -> ServiceCIDR:
    condition = Condition(type="Ready", status=status, reason=reason, message=message)
    return replace(given, status=ServiceCIDRStatus(conditions=(condition,)))


def test_nothing_is_written_where_nothing_differs() -> None:
    done = _with(cidr("kubernetes", *DUAL, finalizers=(FINALIZER,)), "True", "", READY)
    assert look("kubernetes", done)[0] == []
    assert (
        len(look("kubernetes", _with(done, "True", "", "Kubernetes default Service CIDR is ready"))[0]) == 1
    )
    waiting = _with(DELETED, "False", "Terminating", IN_USE)
    assert look("gone", waiting, ip("192.168.0.1"))[0] == []


def test_a_range_in_use_says_why_it_stays() -> None:
    (status,), verdict = look("gone", DELETED, ip("192.168.0.1"))
    assert condition_of(status) == {
        "type": "Ready",
        "status": "False",
        "reason": "Terminating",
        "message": IN_USE,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    assert verdict == Rest("IP addresses of Services are in no other ServiceCIDR")


def test_a_range_goes_ten_seconds_after_its_deletion() -> None:
    half_way = replace(
        DELETING, metadata=replace(DELETING.metadata, deletionTimestamp=NOW - timedelta(seconds=4))
    )
    actions, verdict = look("going", half_way)
    assert actions == []
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=6)
    (patch,), _ = look("gone", DELETED)
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    assert patch == Patch(DELETED, body, PatchType.STRATEGIC)
    assert look("gone", replace(DELETED, metadata=replace(DELETED.metadata, finalizers=("x/y",))))[0] == []


def test_caches_that_are_behind_cost_no_addresses() -> None:
    def live(action: Action[Any]) -> Any:
        if not isinstance(action, List):
            return USUAL
        return [DELETED] if action.kind is SERVICECIDRS else [ip("192.168.0.1")]

    actions, verdict = look("gone", DELETED, cidr("same", *DUAL), answers=live)
    assert actions == []
    assert isinstance(verdict, Wake)


def test_a_range_that_is_gone_is_no_error() -> None:
    _, verdict = look("gone", DELETED, answers={Patch: NotFound("gone")})
    assert verdict == Rest("finalizer removed")


def test_a_refused_status_has_an_event() -> None:
    actions: list[Action[Any]] = []
    seen = controller.see(StaticCaches(controller, KUBERNETES), Key("", "kubernetes"))
    assert seen is not None
    answers: Any = {Patch: [{}, ServerError("down")]}
    with pytest.raises(ServerError):
        walk(controller.decide(seen, NOW), answers, recorded=actions)
    assert actions[-1] == Emit(
        KUBERNETES,
        "Warning",
        "KubernetesServiceCIDRError",
        "The ServiceCIDR Status can not be set to Ready=True",
    )
