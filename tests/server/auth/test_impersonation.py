"""Acting as somebody else: whom a request names, and by which rights it may."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.errors import BadRequest, Forbidden
from steersman.server.auth.attributes import Attributes, Decision
from steersman.server.auth.impersonation import impersonate, last_modes, requested_user
from steersman.server.auth.users import NODE_NAME, User, service_account_user

SENDER = User("sue")
LISTING = Attributes(SENDER, "list", "", "pods", namespace="ns")
AUTHN = "authentication.k8s.io"


class Rights:
    """Allows what is written down: ``verb group/resource[/sub] [namespace/]name``; remembers what was asked."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[str] = []

    def authorize(self, attributes: Attributes) -> Decision:
        a = attributes
        resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
        name = f"{a.namespace}/{a.name}" if a.namespace else a.name
        word = f"{a.verb} {a.group}:{resource} {name}".strip()
        self.asked.append(word)
        return Decision(word in self.allowed)


# -- headers ----------------------------------------------------------------------------------


def test_a_request_says_whom_it_wants_to_act_as() -> None:
    headers = [
        ("Accept", "x"),
        ("impersonate-user", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-Acme.io%2fProject", "a"),
        ("Impersonate-Extra-acme.io%2Fproject", "b"),
        ("Impersonate-Extra-odd%zz", "c"),
    ]
    assert requested_user(headers) == User(
        "bob", "7", ("dev", "ops"), {"acme.io/project": ("a", "b"), "odd%zz": ("c",)}
    )


@pytest.mark.parametrize("headers", [[], [("Accept", "x")], [("Impersonate-User", "")]])
def test_a_request_without_such_headers_is_its_senders(headers: list[tuple[str, str]]) -> None:
    assert requested_user(headers) is None


@pytest.mark.parametrize(
    ("header", "printed"),
    [
        (("Impersonate-Group", "g"), 'UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)'),
        (("Impersonate-Uid", "7"), 'UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            ("Impersonate-Extra-Foo%2fBar", "g"),
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"foo/bar":[]string{"g"}}',
        ),
    ],
)
def test_who_names_no_user_is_refused(header: tuple[str, str], printed: str) -> None:
    with pytest.raises(BadRequest) as refused:
        requested_user([header])
    assert refused.value.message == (
        f'requested &user.DefaultInfo{{Name:"", {printed}}} without impersonating a user name'
    )


# -- the old way ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("whom", "rights", "groups"),
    [
        (User("bob"), ["impersonate :users bob"], ("system:authenticated",)),
        (
            User("bob", groups=("dev",)),
            ["impersonate :users bob", "impersonate :groups dev"],
            ("dev", "system:authenticated"),
        ),
        (
            User("bob", groups=("system:unauthenticated",)),
            ["impersonate :users bob", "impersonate :groups system:unauthenticated"],
            ("system:unauthenticated",),
        ),
        (User("system:anonymous"), ["impersonate :users system:anonymous"], ("system:unauthenticated",)),
        (
            User("system:serviceaccount:ns:bot"),
            ["impersonate :serviceaccounts ns/bot"],
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        (
            User("system:serviceaccount:ns:bot", groups=("dev",)),
            ["impersonate :serviceaccounts ns/bot", "impersonate :groups dev"],
            ("dev", "system:authenticated"),
        ),
        (User("system:node:n"), ["impersonate :users system:node:n"], ("system:authenticated",)),
        (
            User("bob", "7", ("system:masters",), {"a": ("x", "y")}),
            [
                "impersonate :users bob",
                f"impersonate {AUTHN}:uids 7",
                "impersonate :groups system:masters",
                f"impersonate {AUTHN}:userextras/a x",
                f"impersonate {AUTHN}:userextras/a y",
            ],
            ("system:masters", "system:authenticated"),
        ),
    ],
)
def test_every_part_of_the_other_needs_the_right_to_be_it(
    whom: User, rights: list[str], groups: tuple[str, ...]
) -> None:
    found = impersonate(Rights(*rights), LISTING, whom)
    assert (found.user.name, found.user.uid, found.user.groups) == (whom.name, whom.uid, groups)
    assert found.user.extra == whom.extra
    assert found.constraint == ""
    for lacking in rights:
        with pytest.raises(Forbidden):
            impersonate(Rights(*(right for right in rights if right != lacking)), LISTING, whom)


# -- the constrained way ----------------------------------------------------------------------

ON_NODE = service_account_user("ns", "daemon", "u", {NODE_NAME: ("n",)})


@pytest.mark.parametrize(
    ("sender", "whom", "mode", "rights", "groups"),
    [
        (SENDER, User("bob"), "user-info", [f"{AUTHN}:users bob"], ("system:authenticated",)),
        (
            SENDER,
            User("bob", "7", ("dev",), {"acme.io/a": ("x",)}),
            "user-info",
            [
                f"{AUTHN}:users bob",
                f"{AUTHN}:uids 7",
                f"{AUTHN}:groups dev",
                f"{AUTHN}:userextras/acme.io/a x",
            ],
            ("dev", "system:authenticated"),
        ),
        (
            SENDER,
            User("bob", groups=("a", "b", "c", "d")),
            "user-info",
            [f"{AUTHN}:users bob", f"{AUTHN}:groups *"],
            ("a", "b", "c", "d", "system:authenticated"),
        ),
        (
            SENDER,
            User("system:serviceaccount:ns:bot"),
            "serviceaccount",
            [f"{AUTHN}:serviceaccounts ns/bot"],
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        (
            SENDER,
            User("system:node:n"),
            "arbitrary-node",
            [f"{AUTHN}:nodes n"],
            ("system:nodes", "system:authenticated"),
        ),
        (
            ON_NODE,
            User("system:node:n"),
            "associated-node",
            [f"{AUTHN}:nodes *"],
            ("system:nodes", "system:authenticated"),
        ),
    ],
)
def test_each_kind_of_user_has_its_mode(
    sender: User, whom: User, mode: str, rights: list[str], groups: tuple[str, ...]
) -> None:
    needed = [f"impersonate:{mode} {right}" for right in rights]
    needed.append(f"impersonate-on:{mode}:list :pods ns/")
    found = impersonate(Rights(*needed), LISTING._replace(user=sender), whom)
    assert (found.user.name, found.user.groups) == (whom.name, groups)
    assert found.constraint == f"impersonate:{mode}"
    for lacking in needed:
        rest = Rights(*(right for right in needed if right != lacking))
        with pytest.raises(Forbidden):
            impersonate(rest, LISTING._replace(user=sender), whom)


@pytest.mark.parametrize(
    ("sender", "whom", "mode"),
    [
        # Another node than one's own, or not a pod's account.
        (ON_NODE, User("system:node:other"), "associated-node"),
        (User("sue", extra={NODE_NAME: ("n",)}), User("system:node:n"), "associated-node"),
        # More than a name.
        (SENDER, User("system:node:n", groups=("g",)), "arbitrary-node"),
        (SENDER, User("system:serviceaccount:ns:bot", uid="u"), "serviceaccount"),
        (SENDER, User("system:serviceaccount:ns:bot", groups=("g",)), "user-info"),
        (SENDER, User("system:node:n"), "user-info"),
    ],
)
def test_a_mode_is_not_tried_for_whom_it_is_not(sender: User, whom: User, mode: str) -> None:
    rights = Rights()
    with pytest.raises(Forbidden):
        impersonate(rights, LISTING._replace(user=sender), whom)
    assert not any(word.startswith(f"impersonate-on:{mode}:") for word in rights.asked)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"groups": ("dev", "")}, "impersonating the empty string group is not allowed"),
        ({"groups": ("system:masters",)}, "impersonating the system:masters group is not allowed"),
        ({"extra": {"": ("x",)}}, "impersonating the empty string key in extra is not allowed"),
        (
            {"extra": {"plain": ("x",)}},
            'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "plain": must be a'
            ' domain-prefixed path (such as "acme.io/foo")',
        ),
        (
            {"extra": {"acme.io/B": ("x",)}},
            'impersonating a non-lowercase key in extra is not allowed: "acme.io/B"',
        ),
        ({"extra": {"acme.io/b": ("",)}}, "impersonating the empty string value in extra is not allowed"),
    ],
)
def test_the_constrained_way_is_stricter(fields: dict[str, Any], why: str) -> None:
    class Generous:
        def authorize(self, attributes: Attributes) -> Decision:
            return Decision(attributes.verb != "impersonate")

    with pytest.raises(Forbidden) as refused:
        impersonate(Generous(), LISTING, User("bob", **fields))
    assert refused.value.message.endswith(why)


def test_the_first_refusal_counts_where_no_way_is_open() -> None:
    with pytest.raises(Forbidden) as refused:
        impersonate(Rights(), LISTING, User("bob"))
    assert refused.value.message == (
        'pods is forbidden: User "sue" cannot impersonate-on:user-info:list resource "pods" in API group ""'
        ' in the namespace "ns"'
    )
    with pytest.raises(Forbidden) as refused:
        impersonate(Rights(), LISTING, User("system:node:n", groups=("g",)))
    assert refused.value.message == (
        'users "system:node:n" is forbidden: User "sue" cannot impersonate resource "users" in API group ""'
        " at the cluster scope"
    )


def test_the_constrained_way_is_tried_before_the_old_one() -> None:
    everything = Rights(
        "impersonate :users bob",
        f"impersonate:user-info {AUTHN}:users bob",
        "impersonate-on:user-info:list :pods ns/",
    )
    assert impersonate(everything, LISTING, User("bob")).constraint == "impersonate:user-info"


def test_the_way_that_last_allowed_a_sender_is_tried_first_and_refuses_in_its_words() -> None:
    rights, last = Rights("impersonate :users bob"), last_modes()
    assert impersonate(rights, LISTING, User("bob"), last).constraint == ""
    rights.asked.clear()
    with pytest.raises(Forbidden, match='User "sue" cannot impersonate resource "users"'):
        impersonate(rights, LISTING, User("eve"), last)
    assert rights.asked == ["impersonate :users eve", "impersonate-on:user-info:list :pods ns/"]
    with pytest.raises(Forbidden, match="cannot impersonate-on:user-info:list"):
        impersonate(rights, LISTING._replace(user=User("tim")), User("eve"), last)
