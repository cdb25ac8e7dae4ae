"""Impersonation: requests that are carried out as another user.

The headers of a request name the user to impersonate. Two kinds of permission allow it. The old one is
``impersonate`` on the user, each group, the uid and each extra value. The constrained one is per kind of
user (the associated node, any node, a ServiceAccount, any other user): ``impersonate:<mode>`` on the same
things, and ``impersonate-on:<mode>:<verb>`` on the resource of the request itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.errors import Forbidden
from steersman.api.label_syntax import subdomain_errors
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, Authorizer, aggregate, forbidden
from steersman.server.auth.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODE_NAME,
    NODES,
    UNAUTHENTICATED,
    User,
    node_name,
    service_account_groups,
    split_service_account,
)

_GROUP = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"
_MANY_VALUES = 4
"""From this many groups or extras on, constrained impersonation first checks a permission for all of them."""


class Impersonated(msgspec.Struct, frozen=True):
    """The impersonated user, and the constrained verb that allowed it; empty for the old permission."""

    user: User
    constraint: str = ""


class Mode(msgspec.Struct, frozen=True):
    """One mode of impersonation: a kind of user, or the old permission for all of them."""

    name: str
    applies: Callable[[User, User], bool]
    """Whether the mode applies to a target user and a sender."""


# -- headers ----------------------------------------------------------------------------------


def requested_user(headers: Iterable[tuple[str, str]]) -> User | None:
    """The user that the headers of a request ask to impersonate; None without such headers. Raises `BadRequest`."""
    single: dict[str, str] = {}
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for header, value in headers:
        match key := header.lower():
            case "impersonate-user" | "impersonate-uid":
                # The first of a header that should occur once.
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
    """A percent-decoded key, or the key as it is if its encoding is malformed."""
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


# -- authorization ----------------------------------------------------------------------------


LastModes: TypeAlias = BoundedCache[str, str]
"""By sender: the name of the mode that last allowed it to impersonate a user."""


def last_modes() -> LastModes:
    """Remembers modes of as many senders as upstream does."""
    return BoundedCache(10_000)


def impersonate(
    authorizer: Authorizer, attributes: Attributes, target: User, last: LastModes | None = None
) -> Impersonated:
    """The user to carry a request out as. Raises `Forbidden` if its sender may not impersonate ``target``.

    ``attributes`` are those of the request with its sender. All modes are tried, the one that last allowed this sender
    first, which is the cheapest; if none allows it, the first error is raised.
    """
    sender = attributes.user
    known = last.get(sender.name) if last is not None else None
    refusal: Forbidden | None = None
    for mode in sorted(_MODES, key=lambda mode: mode.name != known) if known is not None else _MODES:
        if not mode.applies(target, sender):
            continue
        try:
            if mode.name == _LEGACY:
                found = Impersonated(
                    _check_target(authorizer, sender, target, "impersonate", constrained=False)
                )
            else:
                found = _constrained(authorizer, attributes, target, mode.name)
        except Forbidden as error:
            refusal = refusal or error
            continue
        if last is not None and mode.name != known:
            last.put(sender.name, mode.name)
        return found
    assert refusal is not None, "one mode always applies"
    raise refusal


def _constrained(authorizer: Authorizer, attributes: Attributes, target: User, mode: str) -> Impersonated:
    sender = attributes.user
    if mode == _ASSOCIATED:
        # The node of the sender's token is checked already, so authorizers get the keys only.
        sender = replace(
            sender, extra={"authentication.kubernetes.io/associated-node-keys": tuple(sorted(sender.extra))}
        )
    _check(authorizer, attributes._replace(user=sender, verb=f"impersonate-on:{mode}:{attributes.verb}"))
    verb = f"impersonate:{mode}"
    return Impersonated(_check_target(authorizer, sender, target, verb, constrained=True), verb)


def _check_target(
    authorizer: Authorizer, sender: User, target: User, verb: str, *, constrained: bool
) -> User:
    """The user to impersonate, after each of its parts was authorized."""
    core = _GROUP if constrained else ""
    attributes = Attributes(sender, verb, core, "users", name=target.name)
    actual = target
    node = node_name(target.name) if constrained else None
    account = split_service_account(target.name)
    if node is not None:
        # The associated node is authorized by "*", not by its name.
        name = "*" if verb == f"impersonate:{_ASSOCIATED}" else node
        attributes, actual = (
            attributes._replace(resource="nodes", name=name),
            replace(target, groups=(NODES,)),
        )
    elif account is not None:
        namespace, name = account
        attributes = attributes._replace(resource="serviceaccounts", namespace=namespace, name=name)
        if not target.groups:
            actual = replace(target, groups=service_account_groups(namespace))
    _check(authorizer, attributes)
    if target.uid:
        _check(authorizer, Attributes(sender, verb, _GROUP, "uids", name=target.uid))
    _check_groups(authorizer, Attributes(sender, verb, core, "groups"), target.groups, constrained)
    _check_extra(authorizer, Attributes(sender, verb, _GROUP, "userextras"), target.extra, constrained)
    if actual.name == ANONYMOUS.name:
        return actual.with_group(UNAUTHENTICATED)
    return actual if UNAUTHENTICATED in actual.groups else actual.with_group(AUTHENTICATED)


def _check_groups(
    authorizer: Authorizer, attributes: Attributes, groups: tuple[str, ...], constrained: bool
) -> None:
    if constrained:
        if "" in groups:
            raise forbidden(attributes, "impersonating the empty string group is not allowed")
        if MASTERS in groups:
            detail = "impersonating the system:masters group is not allowed"
            raise forbidden(attributes._replace(name=MASTERS), detail)
        if len(groups) >= _MANY_VALUES and authorizer.authorize(attributes._replace(name="*")).allowed:
            return
    for group in groups:
        _check(authorizer, attributes._replace(name=group))


def _check_extra(
    authorizer: Authorizer, attributes: Attributes, extra: Mapping[str, tuple[str, ...]], constrained: bool
) -> None:
    if constrained:
        for key in sorted(extra):
            if wrong := _extra_error(key, extra[key]):
                raise forbidden(attributes, wrong)
        count = max(len(extra), sum(map(len, extra.values())))
        if (
            count >= _MANY_VALUES
            and authorizer.authorize(attributes._replace(subresource="*", name="*")).allowed
        ):
            return
    for key in sorted(extra):
        for value in extra[key]:
            _check(authorizer, attributes._replace(subresource=key, name=value))


def _check(authorizer: Authorizer, attributes: Attributes) -> None:
    decision = authorizer.authorize(attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision.reason)


_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def _extra_error(key: str, values: tuple[str, ...]) -> str:
    """The error of an extra key or value by the stricter rules of constrained impersonation; empty if none."""
    if not key:
        return "impersonating the empty string key in extra is not allowed"
    host, _, path = key.partition("/")
    if not host or not path:
        wrong = [(key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    else:
        wrong = [(host, detail) for detail in subdomain_errors(host)]
        if not re.fullmatch(_PATH, path):
            wrong.append((path, f"Invalid path (regex used for validation is '{_PATH}')"))
    if wrong:
        node_names = aggregate(
            f"extra.key: Invalid value: {status_errors.quote(value)}: {detail}" for value, detail in wrong
        )
        return f"impersonating an invalid key in extra is not allowed: {node_names}"
    if key != key.lower():
        return f"impersonating a non-lowercase key in extra is not allowed: {status_errors.quote(key)}"
    return "impersonating the empty string value in extra is not allowed" if "" in values else ""


# -- modes ------------------------------------------------------------------------------------

_ASSOCIATED = "associated-node"
_LEGACY = "legacy"


def _has_name_only(target: User) -> bool:
    return not (target.uid or target.groups or target.extra)


def _is_associated_node(target: User, sender: User) -> bool:
    node = node_name(target.name)
    node_names = sender.extra.get(NODE_NAME, ())
    return node is not None and split_service_account(sender.name) is not None and node_names == (node,)


def _is_node(target: User, sender: User) -> bool:
    return node_name(target.name) is not None


def _is_account(target: User, sender: User) -> bool:
    return split_service_account(target.name) is not None


_MODES = (
    Mode(_ASSOCIATED, lambda target, sender: _has_name_only(target) and _is_associated_node(target, sender)),
    Mode("arbitrary-node", lambda target, sender: _has_name_only(target) and _is_node(target, sender)),
    Mode("serviceaccount", lambda target, sender: _has_name_only(target) and _is_account(target, sender)),
    Mode(
        "user-info", lambda target, sender: not _is_node(target, sender) and not _is_account(target, sender)
    ),
    Mode(_LEGACY, lambda target, sender: True),
)
"""Modes, in the order in which they are tried."""
