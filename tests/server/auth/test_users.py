"""Users, and the names of accounts and nodes."""

from __future__ import annotations

import pytest

from steersman.server.auth.users import (
    ANONYMOUS,
    User,
    authenticated,
    node_name,
    service_account_user,
    split_service_account,
)


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        (User("ann"), ("system:authenticated",)),
        (User("ann", groups=("dev",)), ("dev", "system:authenticated")),
        (User("ann", groups=("system:authenticated", "dev")), ("system:authenticated", "dev")),
        (User("ann", groups=("system:unauthenticated",)), ("system:unauthenticated",)),
        (ANONYMOUS, ("system:unauthenticated",)),
        (User("system:anonymous"), ()),
    ],
)
def test_everybody_who_is_recognised_is_in_the_group_of_the_authenticated(
    user: User, groups: tuple[str, ...]
) -> None:
    assert authenticated(user).groups == groups


@pytest.mark.parametrize(
    ("username", "parts"),
    [
        ("system:serviceaccount:ns:name", ("ns", "name")),
        ("system:serviceaccount:ns:a.b", ("ns", "a.b")),
        ("system:serviceaccount:a.b:name", None),
        ("system:serviceaccount:ns", None),
        ("system:serviceaccount:ns:", None),
        ("system:serviceaccount::name", None),
        ("system:serviceaccount:ns:name:more", None),
        ("system:serviceaccount:NS:name", None),
        ("system:node:ns", None),
    ],
)
def test_a_user_name_is_an_account_only_if_it_could_be_one(
    username: str, parts: tuple[str, str] | None
) -> None:
    assert split_service_account(username) == parts


@pytest.mark.parametrize(
    ("username", "node"),
    [
        ("system:node:n1", "n1"),
        ("system:node:n1.example", "n1.example"),
        ("system:node:", None),
        ("n1", None),
    ],
)
def test_a_user_name_is_a_node_only_if_it_could_be_one(username: str, node: str | None) -> None:
    assert node_name(username) == node


def test_an_account_is_in_the_groups_of_all_accounts_and_of_its_namespace() -> None:
    user = service_account_user("ns", "bot", "u1")
    assert (user.name, user.uid) == ("system:serviceaccount:ns:bot", "u1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")


def test_users_can_be_keys_whatever_extra_they_carry() -> None:
    assert len({User("ann", extra={"a": ("b",)}), User("ann", extra={"a": ("b",)})}) == 1
