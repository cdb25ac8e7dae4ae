"""Impersonation: acting as somebody else, where one may.

A request says in its headers whom it wants to act as. There are two ways to be allowed to. The old one is
``impersonate`` on the user, each group, the uid and each extra value. The constrained one is per kind of
user (the node one runs on, any node, a service account, anybody else): ``impersonate:<mode>`` on the same
things, and ``impersonate-on:<mode>:<verb>`` on what the request itself is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from steersman.api.errors import Forbidden
from steersman.api.label_syntax import subdomain_errors
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, Authorizes, aggregate, forbidden
from steersman.server.auth.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODE_NAME,
    NODES,
    UNAUTHENTICATED,
    User,
    account_groups,
    node_of,
    split_account,
)

_GROUP = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"
_MANY = 4
"""From here on a constrained request for many groups is first tried as one for all."""


class Impersonated(NamedTuple):
    """Whom a request goes on as, and by which constrained verb; empty for the old way."""

    user: User
    constraint: str = ""


class Mode(NamedTuple):
    """One constrained way to impersonate, and whom it is for."""

    name: str
    serves: Callable[[User, User], bool]
    """Given whom to act as and who asks."""


# -- headers ----------------------------------------------------------------------------------


def wanted(headers: Iterable[tuple[str, str]]) -> User | None:
    """Whom a request wants to act as, just as it says; None where it does not. Raises `BadRequest`."""
    single: dict[str, str] = {}
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for header, value in headers:
        match key := header.lower():
            case "impersonate-user" | "impersonate-uid":
                # Of a header that should be there once, the first counts.
                single.setdefault(key, value)
            case "impersonate-group":
                groups.append(value)
            case _ if key.startswith(_EXTRA):
                extra.setdefault(_unescaped(key[len(_EXTRA) :]), []).append(value)
    name, uid = single.get("impersonate-user", ""), single.get("impersonate-uid", "")
    user = User(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})
    if name:
        return user
    if uid or groups or extra:
        raise status_errors.bad_request(f"requested {_printed(user)} without impersonating a user name")
    return None


def _unescaped(key: str) -> str:
    """A key with its percents resolved, or as it is where they make no sense."""
    return key if re.search("%(?![0-9a-f]{2})", key) else unquote(key, errors="replace")


def _printed(user: User) -> str:
    """A user as upstream's message prints it."""
    groups = f"{{{', '.join(map(status_errors.quote, user.groups))}}}" if user.groups else "(nil)"
    pairs = (
        f"{status_errors.quote(key)}:[]string{{{', '.join(map(status_errors.quote, user.extra[key]))}}}"
        for key in sorted(user.extra)
    )
    extra = f"{{{', '.join(pairs)}}}" if user.extra else "(nil)"
    return (
        f'&user.DefaultInfo{{Name:"", UID:{status_errors.quote(user.uid)},'
        f" Groups:[]string{groups}, Extra:map[string][]string{extra}}}"
    )


# -- deciding ---------------------------------------------------------------------------------


def impersonate(authorizer: Authorizes, asked: Attributes, whom: User) -> Impersonated:
    """Whom a request goes on as, when it is allowed to be made as somebody else. Raises `Forbidden`.

    ``asked`` is the request as of its sender. All ways are tried; where none is open, the first refusal
    counts.
    """
    refusal: Forbidden | None = None
    for mode in _MODES:
        if mode.serves(whom, asked.user):
            try:
                return _constrained(authorizer, asked, whom, mode.name)
            except Forbidden as error:
                refusal = refusal or error
    try:
        return Impersonated(_checked(authorizer, asked.user, whom, "impersonate", constrained=False))
    except Forbidden as error:
        raise refusal or error from None


def _constrained(authorizer: Authorizes, asked: Attributes, whom: User, mode: str) -> Impersonated:
    sender = asked.user
    if mode == _ASSOCIATED:
        # What a pod's token says of its pod and node is settled: authorisers need not look at it again.
        sender = replace(
            sender, extra={"authentication.kubernetes.io/associated-node-keys": tuple(sorted(sender.extra))}
        )
    _check(authorizer, asked._replace(user=sender, verb=f"impersonate-on:{mode}:{asked.verb}"))
    verb = f"impersonate:{mode}"
    return Impersonated(_checked(authorizer, sender, whom, verb, constrained=True), verb)


def _checked(authorizer: Authorizes, sender: User, whom: User, verb: str, *, constrained: bool) -> User:
    """The user to go on as, after every part of them was checked."""
    core = _GROUP if constrained else ""
    asked = Attributes(sender, verb, core, "users", name=whom.name)
    actual = whom
    node = node_of(whom.name) if constrained else None
    account = split_account(whom.name)
    if node is not None:
        # The node one runs on may be any: it is not by its name that one is allowed to be it.
        name = "*" if verb == f"impersonate:{_ASSOCIATED}" else node
        asked, actual = asked._replace(resource="nodes", name=name), replace(whom, groups=(NODES,))
    elif account is not None:
        namespace, name = account
        asked = asked._replace(resource="serviceaccounts", namespace=namespace, name=name)
        if not whom.groups:
            actual = replace(whom, groups=account_groups(namespace))
    _check(authorizer, asked)
    if whom.uid:
        _check(authorizer, Attributes(sender, verb, _GROUP, "uids", name=whom.uid))
    _check_groups(authorizer, Attributes(sender, verb, core, "groups"), whom.groups, constrained)
    _check_extra(authorizer, Attributes(sender, verb, _GROUP, "userextras"), whom.extra, constrained)
    if actual.name == ANONYMOUS.name:
        return actual.within(UNAUTHENTICATED)
    return actual if UNAUTHENTICATED in actual.groups else actual.within(AUTHENTICATED)


def _check_groups(
    authorizer: Authorizes, asked: Attributes, groups: tuple[str, ...], constrained: bool
) -> None:
    if constrained:
        if "" in groups:
            raise forbidden(asked, "impersonating the empty string group is not allowed")
        if MASTERS in groups:
            why = "impersonating the system:masters group is not allowed"
            raise forbidden(asked._replace(name=MASTERS), why)
        if len(groups) >= _MANY and authorizer.authorize(asked._replace(name="*")).allowed:
            return
    for group in groups:
        _check(authorizer, asked._replace(name=group))


def _check_extra(
    authorizer: Authorizes, asked: Attributes, extra: Mapping[str, tuple[str, ...]], constrained: bool
) -> None:
    if constrained:
        for key in sorted(extra):
            if wrong := _extra_error(key, extra[key]):
                raise forbidden(asked, wrong)
        count = max(len(extra), sum(map(len, extra.values())))
        if count >= _MANY and authorizer.authorize(asked._replace(subresource="*", name="*")).allowed:
            return
    for key in sorted(extra):
        for value in extra[key]:
            _check(authorizer, asked._replace(subresource=key, name=value))


def _check(authorizer: Authorizes, asked: Attributes) -> None:
    decision = authorizer.authorize(asked)
    if not decision.allowed:
        raise forbidden(asked, decision.reason)


_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def _extra_error(key: str, values: tuple[str, ...]) -> str:
    """What is wrong with an extra value, by the stricter rules of the constrained way."""
    if not key:
        return "impersonating the empty string key in extra is not allowed"
    host, _, path = key.partition("/")
    if not host or not path:
        wrong = [(key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    else:
        wrong = [(host, why) for why in subdomain_errors(host)]
        if not re.fullmatch(_PATH, path):
            wrong.append((path, f"Invalid path (regex used for validation is '{_PATH}')"))
    if wrong:
        told = aggregate(
            f"extra.key: Invalid value: {status_errors.quote(value)}: {why}" for value, why in wrong
        )
        return f"impersonating an invalid key in extra is not allowed: {told}"
    if key != key.lower():
        return f"impersonating a non-lowercase key in extra is not allowed: {status_errors.quote(key)}"
    return "impersonating the empty string value in extra is not allowed" if "" in values else ""


# -- modes ------------------------------------------------------------------------------------

_ASSOCIATED = "associated-node"


def _name_alone(whom: User) -> bool:
    return not (whom.uid or whom.groups or whom.extra)


def _own_node(whom: User, sender: User) -> bool:
    node = node_of(whom.name)
    told = sender.extra.get(NODE_NAME, ())
    return node is not None and split_account(sender.name) is not None and told == (node,)


def _is_node(whom: User, sender: User) -> bool:
    return node_of(whom.name) is not None


def _is_account(whom: User, sender: User) -> bool:
    return split_account(whom.name) is not None


_MODES = (
    Mode(_ASSOCIATED, lambda whom, sender: _name_alone(whom) and _own_node(whom, sender)),
    Mode("arbitrary-node", lambda whom, sender: _name_alone(whom) and _is_node(whom, sender)),
    Mode("serviceaccount", lambda whom, sender: _name_alone(whom) and _is_account(whom, sender)),
    Mode("user-info", lambda whom, sender: not _is_node(whom, sender) and not _is_account(whom, sender)),
)
"""In the order in which they are tried."""
