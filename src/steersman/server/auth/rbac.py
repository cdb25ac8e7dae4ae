"""RBAC: roles and bindings as an index, so that a decision costs about a microsecond.

Two steps are remembered. What somebody *holds* in a namespace: the bindings that name them or their
groups, found through an index by subject. And, per verb and resource, which of those rules permit it,
and for which names. Any change to a role or binding forgets both; changes are rare and requests are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from steersman.api.bounded_cache import BoundedCache
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
from steersman.server.auth.attributes import Attributes, Decision, aggregate
from steersman.server.auth.rbac_rules import names, permits
from steersman.server.auth.users import MASTERS, User, account_name
from steersman.server.status_errors import quote
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit, Selection

GROUP = "rbac.authorization.k8s.io"
TABLES = tuple(
    f"{plural}.{GROUP}" for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
)
"""The resources that RBAC reads."""

Policy: TypeAlias = Role | ClusterRole | RoleBinding | ClusterRoleBinding

_MASTER = Decision(True)
_CACHED = 4096
"""Entries of each cache: clients choose what they request, so the number of different requests has no bound."""


class Grant(NamedTuple):
    """One binding that gives somebody a role: the answer it leads to, and what the role allows."""

    decision: Decision
    rules: tuple[PolicyRule, ...]


class Holdings:
    """All that one user, with their groups, holds in one namespace."""

    __slots__ = ("_permitted", "grants", "refusal", "unresolved")

    def __init__(self, grants: Iterable[Grant], unresolved: Iterable[RoleRef]) -> None:
        self.grants = tuple(grants)
        self.unresolved = tuple(unresolved)
        """The roles that are bound but not there."""
        self.refusal = Decision(False, f"RBAC: {self.errors()}" if self.unresolved else "")
        self._permitted: BoundedCache[tuple[str, ...], tuple[tuple[frozenset[str] | None, Decision], ...]] = (
            BoundedCache(_CACHED)
        )

    @property
    def rules(self) -> tuple[PolicyRule, ...]:
        """All rules that apply."""
        return tuple(rule for grant in self.grants for rule in grant.rules)

    def errors(self, resource: str = "") -> str:
        """What is wrong with the bindings, empty if nothing is.

        Upstream names a missing role by its kind when it decides, and by the resource that is being
        written when it checks a write.
        """
        return aggregate(_missing(ref, resource) for ref in self.unresolved)

    def decide(self, asked: Attributes) -> Decision:
        """The answer of the first grant that allows the request."""
        key = asked[1:5] if asked.path is None else (asked.verb, asked.path)
        permitted = self._permitted.get(key)
        if permitted is None:
            permitted = tuple(
                (names(rule, asked), grant.decision)
                for grant in self.grants
                for rule in grant.rules
                if permits(rule, asked)
            )
            self._permitted.put(key, permitted)
        for only, decision in permitted:
            if only is None or asked.name in only:
                return decision
        return self.refusal


class Authorizer:
    """Decides by roles and bindings. Members of system:masters may do anything."""

    def __init__(self, policy: Iterable[Policy] = ()) -> None:
        self._roles: dict[Key, tuple[PolicyRule, ...]] = {}
        """ClusterRoles have the namespace ``""``."""
        self._bindings: dict[Key, RoleBinding | ClusterRoleBinding] = {}
        self._subjects: dict[str, dict[tuple[str, str], dict[str, int]]] = {}
        """By namespace and subject: the bindings, and which of their subjects it is."""
        self._holdings: BoundedCache[tuple[str, tuple[str, ...], str], Holdings] = BoundedCache(_CACHED)
        self.epoch = 0
        """Counts changes: what was decided in an earlier epoch may not hold any more."""
        for obj in policy:
            self.put(obj)

    def fork(self) -> Authorizer:
        """The same policy, to go on separately. What is worked out of it is shared until one of them changes."""
        fork = Authorizer()
        fork._roles = dict(self._roles)
        fork._bindings = dict(self._bindings)
        fork._subjects = {
            namespace: {subject: dict(names) for subject, names in index.items()}
            for namespace, index in self._subjects.items()
        }
        fork._holdings = self._holdings
        fork.epoch = self.epoch
        return fork

    # -- what there is ------------------------------------------------------------------------

    def put(self, obj: Policy) -> None:
        """A role or binding is new, or has changed."""
        self._forget()
        if isinstance(obj, Role | ClusterRole):
            self._roles[obj.key] = obj.rules or ()
            return
        self._unbind(obj.key)
        self._bindings[obj.key] = obj
        index = self._subjects.setdefault(obj.key.namespace, {})
        for i, subject in enumerate(obj.subjects):
            matched = _matched(subject, obj.key.namespace)
            if matched is not None:
                index.setdefault(matched, {}).setdefault(obj.key.name, i)

    def remove(self, obj: Policy) -> None:
        """A role or binding is gone."""
        self._forget()
        if isinstance(obj, Role | ClusterRole):
            self._roles.pop(obj.key, None)
        else:
            self._unbind(obj.key)

    def _unbind(self, key: Key) -> None:
        old = self._bindings.pop(key, None)
        if old is None:
            return
        index = self._subjects[key.namespace]
        for subject in old.subjects:
            matched = _matched(subject, key.namespace)
            if matched is not None and matched in index:
                index[matched].pop(key.name, None)
                if not index[matched]:
                    del index[matched]
        if not index:
            del self._subjects[key.namespace]

    def _forget(self) -> None:
        self.epoch += 1
        if self._holdings:
            # Not emptied: forks that have not changed go on with it.
            self._holdings = BoundedCache(_CACHED)

    # -- what it allows -----------------------------------------------------------------------

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether a request is allowed, and which binding allows it."""
        user = attributes.user
        if MASTERS in user.groups:
            return _MASTER
        return self.holdings(user, attributes.namespace).decide(attributes)

    def holdings(self, user: User, namespace: str) -> Holdings:
        """What somebody holds in a namespace; cluster-wide for ``""``."""
        # Most namespaces have no bindings of their own and share what holds cluster-wide.
        key = (user.name, user.groups, namespace if namespace in self._subjects else "")
        found = self._holdings.get(key)
        if found is None:
            found = self._gather(user, key[2])
            self._holdings.put(key, found)
        return found

    def referenced(self, ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules of the role a binding in this namespace refers to; None where there is none."""
        if ref.kind == "Role":
            return self._roles.get(Key(namespace, ref.name)) if namespace else None
        return self._roles.get(Key("", ref.name)) if ref.kind == "ClusterRole" else None

    def _gather(self, user: User, namespace: str) -> Holdings:
        grants: list[Grant] = []
        unresolved: list[RoleRef] = []
        for scope in ("", namespace) if namespace else ("",):
            for binding, subject in self._applying(user, scope):
                rules = self.referenced(binding.roleRef, scope)
                if rules is None:
                    unresolved.append(binding.roleRef)
                else:
                    grants.append(Grant(Decision(True, _because(binding, subject)), rules))
        return Holdings(grants, unresolved)

    def _applying(
        self, user: User, namespace: str
    ) -> Iterable[tuple[RoleBinding | ClusterRoleBinding, Subject]]:
        """The bindings of a namespace that are about a user, by name, each with its first subject that is."""
        index = self._subjects.get(namespace, {})
        found: dict[str, int] = {}
        for matched in (("User", user.name), *(("Group", group) for group in user.groups)):
            for name, i in index.get(matched, {}).items():
                found[name] = min(i, found.get(name, i))
        for name in sorted(found):
            binding = self._bindings[Key(namespace, name)]
            yield binding, binding.subjects[found[name]]


def _matched(subject: Subject, namespace: str) -> tuple[str, str] | None:
    """The user or group a subject of a binding stands for."""
    if subject.kind == "ServiceAccount":
        home = subject.namespace or namespace
        return ("User", account_name(home, subject.name)) if home else None
    return (subject.kind, subject.name) if subject.kind in ("User", "Group") else None


def _because(binding: RoleBinding | ClusterRoleBinding, subject: Subject) -> str:
    namespace, name = binding.key
    ref = binding.roleRef
    whom = subject.name
    if subject.kind == "ServiceAccount":
        whom = f"{whom}/{subject.namespace or namespace}"
    kind, called = ("RoleBinding", f"{name}/{namespace}") if namespace else ("ClusterRoleBinding", name)
    return (
        f"RBAC: allowed by {kind} {quote(called)} of {ref.kind} {quote(ref.name)}"
        f" to {subject.kind} {quote(whom)}"
    )


def _missing(ref: RoleRef, resource: str) -> str:
    if ref.kind in ("Role", "ClusterRole"):
        return f"{resource or ref.kind.lower()}.{GROUP} {quote(ref.name)} not found"
    return f"unsupported role reference kind: {quote(ref.kind)}"


# -- the roles and bindings of a store --------------------------------------------------------


def policies(store: Store) -> list[Policy]:
    """All roles and bindings of a store."""
    return [obj for name in TABLES for obj in store.table(name).select(Selection())]


def follow(store: Store, known: Authorizer | None = None) -> Authorizer:
    """An authorizer that follows the roles and bindings of a store.

    ``known`` is an authorizer that knows the present ones already.
    """
    authorizer = Authorizer(policies(store)) if known is None else known

    def on_commit(commit: Commit) -> None:
        if commit.resource in TABLES:
            if commit.event.type is EventType.DELETED:
                authorizer.remove(commit.obj)
            else:
                authorizer.put(commit.obj)

    store.commit_hooks.append(on_commit)
    return authorizer
