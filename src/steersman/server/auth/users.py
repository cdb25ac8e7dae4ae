"""User: an authenticated user, and the user and group names upstream reserves."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from steersman.api.kinds import EMPTY
from steersman.api.label_syntax import subdomain_errors
from steersman.server.validation.names import dns1123_label

MASTERS = "system:masters"
"""The group that is allowed everything, whatever the roles say."""
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


class User(msgspec.Struct, frozen=True):
    """An authenticated user, as authorization sees it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = EMPTY

    def __hash__(self) -> int:
        # Mappings have no hash.
        return hash((self.name, self.uid, self.groups))

    def with_group(self, group: str) -> User:
        """The same user, a member of one more group."""
        if group in self.groups:
            return self
        return User(self.name, self.uid, (*self.groups, group), self.extra)


ADMIN = User("system:admin", groups=(MASTERS, AUTHENTICATED))
"""An administrator: the user of in-process clients unless they name another."""
APISERVER = User("system:apiserver", groups=(MASTERS,))
"""The API server itself, where it writes of its own accord."""
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))


def authenticated(user: User) -> User:
    """The user as a member of system:authenticated, unless it is anonymous."""
    if user.name == ANONYMOUS.name or UNAUTHENTICATED in user.groups:
        return user
    return user.with_group(AUTHENTICATED)


# -- service accounts and nodes ---------------------------------------------------------------


def service_account_username(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every ServiceAccount of a namespace."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def service_account_user(
    namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]] = EMPTY
) -> User:
    """A ServiceAccount as a user."""
    return User(service_account_username(namespace, name), uid, service_account_groups(namespace), extra)


def split_service_account(username: str) -> tuple[str, str] | None:
    """The namespace and name of a ServiceAccount by its user name; None for other users."""
    if not username.startswith(_ACCOUNT):
        return None
    namespace, colon, name = username[len(_ACCOUNT) :].partition(":")
    if not colon or ":" in name or dns1123_label(namespace) or subdomain_errors(name):
        return None
    return namespace, name


def node_user(name: str) -> User:
    """The kubelet of a node as a user."""
    return User(f"{_NODE}{name}", groups=(NODES,))


def node_identity(user: User) -> str | None:
    """The name of the node that a user is the kubelet of; None for other users."""
    return user.name[len(_NODE) :] if user.name.startswith(_NODE) and NODES in user.groups else None


def node_name(username: str) -> str | None:
    """The name of a node by its user name; None for other users."""
    if not username.startswith(_NODE):
        return None
    name = username[len(_NODE) :]
    return None if subdomain_errors(name) else name
