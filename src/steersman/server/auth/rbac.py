"""RBACAuthorizer: roles and bindings as an index, so that a decision costs about a microsecond.

Two steps are cached. The effective rules of a user in a namespace: the bindings of the user and its groups, found
through an index by subject. And, per verb and resource, which of those rules match, and for which names. Any
change to a role or binding invalidates both; changes are rare and requests are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from steersman.api.bounded_cache import MAX_SHORT, BoundedCache
from steersman.api.generated.rbac_v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from steersman.api.scheme import Key
from steersman.client.api import EventType
from steersman.server.auth.attributes import Attributes, Authorizer, Decision, aggregate
from steersman.server.auth.rbac_rules import resource_names, rule_matches
from steersman.server.auth.users import MASTERS, NODES, User, service_account_username
from steersman.server.status_errors import quote
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit, Selection

GROUP = "rbac.authorization.k8s.io"
TABLES = tuple(
    f"{plural}.{GROUP}" for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
)
"""The resources that RBAC reads."""

Policy: TypeAlias = Role | ClusterRole | RoleBinding | ClusterRoleBinding

_ALLOWED_MASTERS = Decision(True)
_CACHE_SIZE = 4096
"""Entries of each cache: clients choose what they request, so the number of different requests has no bound."""


class Grant(msgspec.Struct, frozen=True):
    """One binding that grants a user a role: the decision it leads to, and the rules of the role."""

    decision: Decision
    rules: tuple[PolicyRule, ...]


class EffectiveRules:
    """The rules that apply to one user and its groups in one namespace."""

    __slots__ = ("_permitted", "grants", "refusal", "unresolved")

    def __init__(self, grants: Iterable[Grant], unresolved: Iterable[RoleRef]) -> None:
        self.grants = tuple(grants)
        self.unresolved = tuple(unresolved)
        """The references of bindings to roles that do not exist."""
        self.refusal = Decision(False, f"RBAC: {self.errors()}" if self.unresolved else "")
        self._permitted: BoundedCache[tuple[str, ...], tuple[tuple[frozenset[str] | None, Decision], ...]] = (
            BoundedCache(_CACHE_SIZE)
        )

    @property
    def rules(self) -> tuple[PolicyRule, ...]:
        """All rules that apply."""
        return tuple(rule for grant in self.grants for rule in grant.rules)

    def errors(self, resource: str = "") -> str:
        """The resolution errors of the bindings; empty if there are none.

        Upstream names a missing role by its kind in decisions, and by the written resource in escalation checks.
        """
        return aggregate(_unresolved_error(ref, resource) for ref in self.unresolved)

    def decide(self, attributes: Attributes) -> Decision:
        """The decision of the first grant that allows the request."""
        key = attributes[1:5] if attributes.path is None else (attributes.verb, attributes.path)
        permitted = self._permitted.get(key)
        if permitted is None:
            permitted = tuple(
                (resource_names(rule, attributes), grant.decision)
                for grant in self.grants
                for rule in grant.rules
                if rule_matches(rule, attributes)
            )
            if sum(map(len, key)) <= MAX_SHORT:
                # Clients without credentials choose the path.
                self._permitted.put(key, permitted)
        for only, decision in permitted:
            if only is None or attributes.name in only:
                return decision
        return self.refusal


class RBACAuthorizer:
    """Authorizes by roles and bindings. Members of system:masters are allowed everything."""

    def __init__(self, policy: Iterable[Policy] = ()) -> None:
        self._roles: dict[Key, tuple[PolicyRule, ...]] = {}
        """Rules by key; ClusterRoles have the namespace ``""``."""
        self._bindings: dict[Key, RoleBinding | ClusterRoleBinding] = {}
        self._subjects: dict[str, dict[tuple[str, str], dict[str, int]]] = {}
        """By namespace and subject: the names of its bindings, and the index of the subject in each."""
        self._rules: BoundedCache[tuple[str, tuple[str, ...], str], EffectiveRules] = BoundedCache(
            _CACHE_SIZE
        )
        self.nodes: Authorizer | None = None
        """Asked first about requests of nodes (upstream's authorization modes Node,RBAC)."""
        self.generation = 0
        """Incremented by every change; decisions of an earlier generation may be outdated."""
        for obj in policy:
            self.put(obj)

    def fork(self) -> RBACAuthorizer:
        """An independent copy. Cached rules are shared until one of them changes."""
        fork = RBACAuthorizer()
        fork._roles = dict(self._roles)
        fork._bindings = dict(self._bindings)
        fork._subjects = {
            namespace: {subject: dict(names) for subject, names in index.items()}
            for namespace, index in self._subjects.items()
        }
        fork._rules = self._rules
        fork.generation = self.generation
        return fork

    # -- roles and bindings -------------------------------------------------------------------

    def put(self, obj: Policy) -> None:
        """Adds or replaces a role or binding."""
        self._invalidate()
        if isinstance(obj, Role | ClusterRole):
            self._roles[obj.key] = obj.rules or ()
            return
        self._remove_binding(obj.key)
        self._bindings[obj.key] = obj
        index = self._subjects.setdefault(obj.key.namespace, {})
        for i, subject in enumerate(obj.subjects):
            matched = _subject_key(subject, obj.key.namespace)
            if matched is not None:
                index.setdefault(matched, {}).setdefault(obj.key.name, i)

    def remove(self, obj: Policy) -> None:
        """Removes a role or binding."""
        self._invalidate()
        if isinstance(obj, Role | ClusterRole):
            self._roles.pop(obj.key, None)
        else:
            self._remove_binding(obj.key)

    def _remove_binding(self, key: Key) -> None:
        old = self._bindings.pop(key, None)
        if old is None:
            return
        index = self._subjects[key.namespace]
        for subject in old.subjects:
            matched = _subject_key(subject, key.namespace)
            if matched is not None and matched in index:
                index[matched].pop(key.name, None)
                if not index[matched]:
                    del index[matched]
        if not index:
            del self._subjects[key.namespace]

    def _invalidate(self) -> None:
        self.generation += 1
        if self._rules:
            # Replaced, not cleared: forks share it.
            self._rules = BoundedCache(_CACHE_SIZE)

    # -- decisions ----------------------------------------------------------------------------

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether a request is allowed, and which binding allows it."""
        user = attributes.user
        if MASTERS in user.groups:
            return _ALLOWED_MASTERS
        decision = self.rules_for(user, attributes.namespace).decide(attributes)
        if self.nodes is None or NODES not in user.groups:
            return decision
        of_node = self.nodes.authorize(attributes)
        if of_node.allowed or not of_node.reason:
            return of_node if of_node.allowed else decision
        if decision.allowed:
            return decision
        return Decision(False, "\n".join(filter(None, (of_node.reason, decision.reason))))

    def rules_for(self, user: User, namespace: str) -> EffectiveRules:
        """The effective rules of a user in a namespace; cluster-wide for ``""``."""
        # Most namespaces have no bindings of their own and share the cluster-wide rules.
        key = (user.name, user.groups, namespace if namespace in self._subjects else "")
        found = self._rules.get(key)
        if found is None:
            found = self._resolve(user, key[2])
            self._rules.put(key, found)
        return found

    def role_rules(self, ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules of the role that a binding in this namespace refers to; None if it does not exist."""
        if ref.kind == "Role":
            return self._roles.get(Key(namespace, ref.name)) if namespace else None
        return self._roles.get(Key("", ref.name)) if ref.kind == "ClusterRole" else None

    def _resolve(self, user: User, namespace: str) -> EffectiveRules:
        grants: list[Grant] = []
        unresolved: list[RoleRef] = []
        for scope in ("", namespace) if namespace else ("",):
            for binding, subject in self._bindings_of(user, scope):
                rules = self.role_rules(binding.roleRef, scope)
                if rules is None:
                    unresolved.append(binding.roleRef)
                else:
                    grants.append(Grant(Decision(True, _reason(binding, subject)), rules))
        return EffectiveRules(grants, unresolved)

    def _bindings_of(
        self, user: User, namespace: str
    ) -> Iterable[tuple[RoleBinding | ClusterRoleBinding, Subject]]:
        """The bindings of a namespace that apply to a user, by name, each with its first subject that does."""
        index = self._subjects.get(namespace, {})
        found: dict[str, int] = {}
        for matched in (("User", user.name), *(("Group", group) for group in user.groups)):
            for name, i in index.get(matched, {}).items():
                found[name] = min(i, found.get(name, i))
        for name in sorted(found):
            binding = self._bindings[Key(namespace, name)]
            yield binding, binding.subjects[found[name]]


def _subject_key(subject: Subject, namespace: str) -> tuple[str, str] | None:
    """The user or group of a subject of a binding; None for an unknown kind."""
    if subject.kind == "ServiceAccount":
        home = subject.namespace or namespace
        return ("User", service_account_username(home, subject.name)) if home else None
    return (subject.kind, subject.name) if subject.kind in ("User", "Group") else None


def _reason(binding: RoleBinding | ClusterRoleBinding, subject: Subject) -> str:
    namespace, name = binding.key
    ref = binding.roleRef
    subject_name = subject.name
    if subject.kind == "ServiceAccount":
        subject_name = f"{subject_name}/{subject.namespace or namespace}"
    kind, binding_name = ("RoleBinding", f"{name}/{namespace}") if namespace else ("ClusterRoleBinding", name)
    return (
        f"RBAC: allowed by {kind} {quote(binding_name)} of {ref.kind} {quote(ref.name)}"
        f" to {subject.kind} {quote(subject_name)}"
    )


def _unresolved_error(ref: RoleRef, resource: str) -> str:
    if ref.kind in ("Role", "ClusterRole"):
        return f"{resource or ref.kind.lower()}.{GROUP} {quote(ref.name)} not found"
    return f"unsupported role reference kind: {quote(ref.kind)}"


# -- the roles and bindings of a store --------------------------------------------------------


def policies(store: Store) -> list[Policy]:
    """All roles and bindings of a store."""
    return [obj for name in TABLES for obj in store.table(name).select(Selection())]


def follow(store: Store, known: RBACAuthorizer | None = None) -> RBACAuthorizer:
    """An authorizer that follows the roles and bindings of a store.

    ``known`` is an authorizer that knows the present ones already.
    """
    authorizer = RBACAuthorizer(policies(store)) if known is None else known

    def on_commit(commit: Commit) -> None:
        if commit.resource in TABLES:
            if commit.event.type is EventType.DELETED:
                authorizer.remove(commit.obj)
            else:
                authorizer.put(commit.obj)

    store.commit_hooks.append(on_commit)
    return authorizer
