"""Every active namespace has its default ServiceAccount."""

from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import AlreadyExists, Cause, Forbidden, ServerError
from steersman.api.kinds import (
    SERVICEACCOUNTS,
    Namespace,
    NamespaceStatus,
    ObjectMeta,
    ServiceAccount,
)
from steersman.api.scheme import Key
from steersman.controllers.serviceaccount import Observation, controller, decide
from steersman.intent.actions import Create
from steersman.intent.controller import Change
from steersman.intent.verdict import Rest
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ACCOUNT = ServiceAccount(metadata=ObjectMeta(namespace="shop", name="default"))


def seen(phase: str = "Active", *, has_account: bool = False) -> Observation:
    return Observation(
        Namespace(metadata=ObjectMeta(name="shop"), status=NamespaceStatus(phase=phase)), has_account
    )


def test_a_namespace_without_the_account_gets_it() -> None:
    actions, verdict = walk(decide(seen(), NOW))
    assert actions == [Create(SERVICEACCOUNTS, "shop", ACCOUNT)]
    assert verdict == Rest("ServiceAccount created")


@pytest.mark.parametrize("state", [seen(has_account=True), seen("Terminating")])
def test_nothing_is_done_where_it_is_there_or_the_namespace_is_not_active(state: Observation) -> None:
    actions, _ = walk(decide(state, NOW))
    assert actions == []


@pytest.mark.parametrize(
    "refusal",
    [AlreadyExists("there"), Forbidden("no", causes=(Cause("NamespaceTerminating", "", ""),))],
)
def test_an_account_made_by_another_or_a_namespace_that_goes_is_no_error(refusal: Exception) -> None:
    _, verdict = walk(decide(seen(), NOW), {Create: refusal})
    assert isinstance(verdict, Rest)


def test_a_server_that_fails_is_tried_again() -> None:
    with pytest.raises(ServerError):
        walk(decide(seen(), NOW), {Create: ServerError("down")})


def test_only_the_deletion_of_an_account_is_a_reason_to_look() -> None:
    watch = controller.watches[1]
    assert list(watch.to(None, Change(ACCOUNT, None))) == [Key("", "shop")]  # type: ignore[arg-type]
    assert list(watch.to(None, Change(None, ACCOUNT))) == []  # type: ignore[arg-type]
    assert list(watch.to(None, Change(ACCOUNT, ACCOUNT))) == []  # type: ignore[arg-type]


# -- upstream's table: a change, what exists then, and what is created ----------------------------


def in_phase(phase: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name="shop"), status=NamespaceStatus(phase=phase))


ACTIVE, TERMINATING = in_phase("Active"), in_phase("Terminating")
OTHER = ServiceAccount(metadata=ObjectMeta(namespace="shop", name="other"))
NAMESPACE_ADDED, NAMESPACE_UPDATED, ACCOUNT_DELETED = "added", "updated", "account deleted"


@pytest.mark.parametrize(
    ("event", "changed", "existing", "created"),
    [
        (NAMESPACE_ADDED, ACTIVE, (), True),
        (NAMESPACE_ADDED, ACTIVE, (OTHER,), True),
        (NAMESPACE_ADDED, ACTIVE, (ACCOUNT, OTHER), False),
        (NAMESPACE_ADDED, TERMINATING, (), False),
        (NAMESPACE_ADDED, in_phase(""), (), False),
        (NAMESPACE_UPDATED, ACTIVE, (), True),
        (NAMESPACE_UPDATED, ACTIVE, (ACCOUNT,), False),
        (NAMESPACE_UPDATED, ACTIVE, (ACCOUNT, OTHER), False),
        (NAMESPACE_UPDATED, TERMINATING, (), False),
        (ACCOUNT_DELETED, ACCOUNT, (), False),
        (ACCOUNT_DELETED, ACCOUNT, (ACTIVE, OTHER), True),
        (ACCOUNT_DELETED, ACCOUNT, (TERMINATING,), False),
        (ACCOUNT_DELETED, OTHER, (ACTIVE, ACCOUNT), False),
        (ACCOUNT_DELETED, OTHER, (TERMINATING,), False),
    ],
)
def test_a_change_creates_the_account_where_an_active_namespace_lacks_it(
    event: str, changed: Any, existing: tuple[Any, ...], created: bool
) -> None:
    deleted = event == ACCOUNT_DELETED
    caches = StaticCaches(controller, *existing, *(() if deleted else (changed,)))
    old = changed if event != NAMESPACE_ADDED else None
    change = Change(old, None if deleted else changed)
    (key,) = controller.watches[1 if deleted else 0].to(caches, change)
    found = controller.see(caches, key)
    actions = walk(decide(found, NOW))[0] if found is not None else []
    assert actions == ([Create(SERVICEACCOUNTS, "shop", ACCOUNT)] if created else [])
