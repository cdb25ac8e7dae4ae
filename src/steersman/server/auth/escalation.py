"""Privilege escalation prevention: a user can grant only permissions that the user has.

Checked for each write to a role or binding, before it is stored. Exempt are members of system:masters, and users
with the verb ``escalate`` or ``bind`` on the role.
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
from steersman.server.auth.rbac import GROUP, Policy, RBACAuthorizer
from steersman.server.auth.rbac_rules import FULL_AUTHORITY, compact, rule_text, uncovered_rules
from steersman.server.auth.users import MASTERS, User

_PLURAL = {
    Role: "roles",
    ClusterRole: "clusterroles",
    RoleBinding: "rolebindings",
    ClusterRoleBinding: "clusterrolebindings",
}


def check(
    authorizer: RBACAuthorizer,
    user: User,
    new: Policy,
    old: Policy | None = None,
    *,
    namespace: str = "",
    name: str = "",
) -> None:
    """Refuses a write that grants permissions its user does not have.

    ``namespace`` and ``name`` are those of the request's path; a create has no name there. Raises
    `Forbidden`, or `NotFound` for a binding to a role that does not exist.
    """
    if MASTERS in user.groups:
        return
    if isinstance(new, Role | ClusterRole):
        attributes = Attributes(user, "escalate", GROUP, _PLURAL[type(new)], namespace=namespace, name=name)
        if not authorizer.authorize(attributes).allowed and not _is_gc_update(new, old):
            _check_role_rules(authorizer, user, new, old, namespace)
    elif not _is_gc_update(new, old) and not _may_bind(authorizer, user, new.roleRef, namespace):
        rules = authorizer.role_rules(new.roleRef, namespace)
        if rules is None:
            # Upstream's error names the resource of the binding, not of the role.
            raise status_errors.not_found(GROUP, _PLURAL[type(new)], new.roleRef.name)
        _check_rules(authorizer, user, new, rules, namespace)


def _check_role_rules(
    authorizer: RBACAuthorizer, user: User, new: Role | ClusterRole, old: Policy | None, namespace: str
) -> None:
    _check_rules(authorizer, user, new, new.rules or (), namespace)
    # An aggregated role can gain any rule through labels, so its author needs all permissions.
    if (_aggregates(new) or _aggregates(old)) and uncovered_rules(
        authorizer.rules_for(user, namespace).rules, FULL_AUTHORITY
    ):
        raise _forbidden(new, "must have cluster-admin privileges to use the aggregationRule")


def _check_rules(
    authorizer: RBACAuthorizer, user: User, new: Policy, rules: Iterable[PolicyRule], namespace: str
) -> None:
    held = authorizer.rules_for(user, namespace)
    lacking = uncovered_rules(held.rules, rules)
    if not lacking:
        return
    rules_text = "\n".join(sorted(dict.fromkeys(map(rule_text, compact(lacking)))))
    detail = (
        f"user {status_errors.quote(user.name)} (groups={quoted(user.groups)})"
        f" is attempting to grant RBAC permissions not currently held:\n{rules_text}"
    )
    errors = held.errors(_PLURAL[type(new)])
    raise _forbidden(new, f"{detail}; resolution errors: [{errors}]" if errors else detail)


def _may_bind(authorizer: RBACAuthorizer, user: User, ref: RoleRef, namespace: str) -> bool:
    if ref.kind not in ("Role", "ClusterRole"):
        return False
    plural = "roles" if ref.kind == "Role" else "clusterroles"
    attributes = Attributes(user, "bind", ref.apiGroup, plural, namespace=namespace, name=ref.name)
    return authorizer.authorize(attributes).allowed


def _is_gc_update(new: Policy, old: Policy | None) -> bool:
    """Whether an update changes only what the garbage collector writes."""
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


def _forbidden(new: Policy, detail: str) -> Exception:
    return status_errors.forbidden(GROUP, _PLURAL[type(new)], new.metadata.name, detail)
