"""Users: who somebody is once they have been recognised, and the names upstream reserves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steersman.api.kinds import EMPTY
from steersman.api.label_syntax import subdomain_errors
from steersman.server.validation.names import dns1123_label

MASTERS = "system:masters"
"""May do anything, whatever the roles say."""
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
NODES = "system:nodes"
SERVICE_ACCOUNTS = "system:serviceaccounts"

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"

_ACCOUNT = "system:serviceaccount:"
_NODE = "system:node:"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, as authorisation sees them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: EMPTY, hash=False)

    def within(self, group: str) -> User:
        """The same user, a member of one more group."""
        if group in self.groups:
            return self
        # Not `replace`, which costs more than the rest of recognising somebody.
        return User(self.name, self.uid, (*self.groups, group), self.extra)


ADMIN = User("system:admin", groups=(MASTERS, AUTHENTICATED))
"""An administrator: the user of in-process clients unless they name another."""
APISERVER = User("system:apiserver", groups=(MASTERS,))
"""The API server itself, where it writes of its own accord."""
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))


def authenticated(user: User) -> User:
    """The user with the group of everybody who has been recognised, unless they say otherwise."""
    if user.name == ANONYMOUS.name or UNAUTHENTICATED in user.groups:
        return user
    return user.within(AUTHENTICATED)


# -- service accounts and nodes ---------------------------------------------------------------


def account_name(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups every ServiceAccount of a namespace is in."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def account(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]] = EMPTY) -> User:
    """A ServiceAccount as a user."""
    return User(account_name(namespace, name), uid, account_groups(namespace), extra)


def split_account(username: str) -> tuple[str, str] | None:
    """The namespace and name of the ServiceAccount a user is, or None."""
    if not username.startswith(_ACCOUNT):
        return None
    namespace, colon, name = username[len(_ACCOUNT) :].partition(":")
    if not colon or ":" in name or dns1123_label(namespace) or subdomain_errors(name):
        return None
    return namespace, name


def node_of(username: str) -> str | None:
    """The name of the node a user is, or None."""
    if not username.startswith(_NODE):
        return None
    name = username[len(_NODE) :]
    return None if subdomain_errors(name) else name
