"""Nobody grants what they do not have: what a write to a role or binding must pass.

Called with the object as it was sent, before it is stored. Members of system:masters, those who may
``escalate`` the role, and those who may ``bind`` it are free to.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman.api.generated.rbac_v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
)
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, quoted
from steersman.server.auth.rbac import GROUP, Authorizer, Policy
from steersman.server.auth.rbac_rules import FULL_AUTHORITY, compact, describe, missing
from steersman.server.auth.users import MASTERS, User

_PLURAL = {
    Role: "roles",
    ClusterRole: "clusterroles",
    RoleBinding: "rolebindings",
    ClusterRoleBinding: "clusterrolebindings",
}


def check(
    authorizer: Authorizer,
    user: User,
    new: Policy,
    old: Policy | None = None,
    *,
    namespace: str = "",
    name: str = "",
) -> None:
    """Refuse a write that would give away more than the writer holds.

    ``namespace`` and ``name`` are those of the request's path; a create has no name there. Raises
    `Forbidden`, or `NotFound` for a binding to a role that is not there.
    """
    if MASTERS in user.groups:
        return
    if isinstance(new, Role | ClusterRole):
        asked = Attributes(user, "escalate", GROUP, _PLURAL[type(new)], namespace=namespace, name=name)
        if not authorizer.authorize(asked).allowed and not _only_collected(new, old):
            _check_role(authorizer, user, new, old, namespace)
    elif not _only_collected(new, old) and not _may_bind(authorizer, user, new.roleRef, namespace):
        rules = authorizer.referenced(new.roleRef, namespace)
        if rules is None:
            # Upstream looks the role up within the request for the binding, and names that.
            raise status_errors.not_found(GROUP, _PLURAL[type(new)], new.roleRef.name)
        _check_rules(authorizer, user, new, rules, namespace)


def _check_role(
    authorizer: Authorizer, user: User, new: Role | ClusterRole, old: Policy | None, namespace: str
) -> None:
    _check_rules(authorizer, user, new, new.rules or (), namespace)
    # An aggregated role gathers whatever others are labelled with, so it takes all there is to hold.
    if (_aggregates(new) or _aggregates(old)) and missing(
        authorizer.holdings(user, namespace).rules, FULL_AUTHORITY
    ):
        raise _refusal(new, "must have cluster-admin privileges to use the aggregationRule")


def _check_rules(
    authorizer: Authorizer, user: User, new: Policy, rules: Iterable[PolicyRule], namespace: str
) -> None:
    held = authorizer.holdings(user, namespace)
    lacking = missing(held.rules, rules)
    if not lacking:
        return
    told = "\n".join(sorted(dict.fromkeys(map(describe, compact(lacking)))))
    why = (
        f"user {status_errors.quote(user.name)} (groups={quoted(user.groups)})"
        f" is attempting to grant RBAC permissions not currently held:\n{told}"
    )
    errors = held.errors(_PLURAL[type(new)])
    raise _refusal(new, f"{why}; resolution errors: [{errors}]" if errors else why)


def _may_bind(authorizer: Authorizer, user: User, ref: RoleRef, namespace: str) -> bool:
    if ref.kind not in ("Role", "ClusterRole"):
        return False
    plural = "roles" if ref.kind == "Role" else "clusterroles"
    asked = Attributes(user, "bind", ref.apiGroup, plural, namespace=namespace, name=ref.name)
    return authorizer.authorize(asked).allowed


def _only_collected(new: Policy, old: Policy | None) -> bool:
    """Whether nothing differs but what the garbage collector writes."""
    if old is None or type(new) is not type(old):
        return False
    was = old.metadata
    metadata = msgspec.structs.replace(
        new.metadata,
        ownerReferences=was.ownerReferences,
        finalizers=was.finalizers,
        managedFields=was.managedFields,
    )
    return msgspec.structs.replace(new, metadata=metadata) == old


def _aggregates(role: Policy | None) -> bool:
    rule = role.aggregationRule if isinstance(role, ClusterRole) else None
    return rule is not None and bool(rule.clusterRoleSelectors)


def _refusal(new: Policy, why: str) -> Exception:
    return status_errors.forbidden(GROUP, _PLURAL[type(new)], new.metadata.name, why)
