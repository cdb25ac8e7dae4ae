"""Matcher: decides which requests an admission webhook or an admission policy is asked about.

One module for both, as upstream shares its predicates: rules with operations, scope and names, selectors of namespaces
and objects, and matchPolicy Equivalent, by which a rule for one version of a resource also matches requests for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from steersman.api.generated.admissionregistration_v1 import (
    MatchResources,
    MutatingWebhook,
    NamedRuleWithOperations,
    RuleWithOperations,
    ValidatingWebhook,
)
from steersman.api.label_selectors import LabelSelectorLike, Selector, compile_selector
from steersman.server.registry.resources import Registry, Resource
from steersman.server.server import AdmissionAttributes

GROUP = "admissionregistration.k8s.io"
_EXEMPT_KINDS = frozenset(
    (
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    )
)
_NOTHING: Mapping[str, str] = {}

Equivalents: TypeAlias = Callable[[Resource], tuple[Resource, ...]]
"""Returns the other versions of a resource that are served."""


def is_exempt(resource: Resource) -> bool:
    """Whether no webhook or policy is asked about a resource: those that configure admission are exempt."""
    return resource.group == GROUP and resource.kind in _EXEMPT_KINDS


class Rule(msgspec.Struct, frozen=True):
    """One rule: a request matches if its operation, group, version, resource, scope and name do."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[tuple[str, str]]
    """Plurals and subresources; ``*`` is any. A plural alone is the object itself, without subresources."""
    scope: str = "*"
    names: frozenset[str] = frozenset()
    """The names of objects; all names if empty."""

    def matches(self, request: AdmissionAttributes, resource: Resource) -> bool:
        """Whether a request matches, taken as one for ``resource``."""
        plural, subresource = resource.plural, request.subresource
        resources = self.resources
        return (
            (request.operation in self.operations or "*" in self.operations)
            and (resource.group in self.groups or "*" in self.groups)
            and (resource.version in self.versions or "*" in self.versions)
            and (
                (plural, subresource) in resources
                or ("*", subresource) in resources
                or (plural, "*") in resources
                or ("*", "*") in resources
            )
            and (self.scope == "*" or (self.scope == "Namespaced") is _is_namespaced(request))
            and (not self.names or request.name in self.names)
        )


def _is_namespaced(request: AdmissionAttributes) -> bool:
    # Upstream gives requests for a Namespace its own name as their namespace, and makes this exception.
    return bool(request.namespace) and request.resource.id != "namespaces"


class Matcher(msgspec.Struct, frozen=True):
    """The rules and selectors of one webhook, policy or binding, compiled."""

    rules: tuple[Rule, ...]
    """A request must match one of these; without any, it need not."""
    excluded: tuple[Rule, ...] = ()
    """A request that matches one of these does not match, whatever the others are."""
    namespace_selector: Selector | None = None
    """None selects every namespace."""
    object_selector: Selector | None = None
    """None selects every object."""
    equivalent: bool = True
    """matchPolicy is Equivalent."""
    needs_rules: bool = False
    """Without rules nothing matches: a webhook. The constraints of a policy match everything then."""

    def matches(
        self,
        request: AdmissionAttributes,
        namespace_labels: Callable[[AdmissionAttributes], Mapping[str, str]],
        equivalents: Equivalents,
    ) -> Resource | None:
        """The resource at whose version the request matches, to which its objects are converted; None if it does not.

        ``namespace_labels`` is `namespace_labels` for a server; it is called only when the request's resource matches.
        """
        resource: Resource | None = request.resource
        if self.rules or self.needs_rules:
            resource = self._matching(self.rules, request, equivalents)
        if resource is None:
            return None
        if self.excluded and self._matching(self.excluded, request, equivalents) is not None:
            return None
        selector = self.namespace_selector
        # A cluster-scoped object other than a Namespace is never exempted by the selector.
        in_namespace = request.namespace or request.resource.id == "namespaces"
        if selector is not None and in_namespace and not selector.matches(namespace_labels(request)):
            return None
        selector = self.object_selector
        if selector is not None and not (_selects(selector, request.obj) or _selects(selector, request.old)):
            return None
        return resource

    def _matching(
        self, rules: tuple[Rule, ...], request: AdmissionAttributes, equivalents: Equivalents
    ) -> Resource | None:
        requested = request.resource
        for rule in rules:
            if rule.matches(request, requested):
                return requested
        if self.equivalent:
            others = equivalents(requested)
            for rule in rules:
                for other in others:
                    if rule.matches(request, other):
                        return other
        return None


def _selects(selector: Selector, obj: object) -> bool:
    meta = getattr(obj, "metadata", None)
    return meta is not None and selector.matches(meta.labels or _NOTHING)


# -- compiling ------------------------------------------------------------------------------------


def compile_rule(rule: RuleWithOperations | NamedRuleWithOperations) -> Rule:
    """Compiles a rule of a webhook or of a policy."""
    resources = frozenset((plural, sub) for plural, _, sub in (one.partition("/") for one in rule.resources))
    names = rule.resourceNames if isinstance(rule, NamedRuleWithOperations) else ()
    return Rule(
        frozenset(rule.operations),
        frozenset(rule.apiGroups),
        frozenset(rule.apiVersions),
        resources,
        rule.scope or "*",
        frozenset(names),
    )


def compile_constraints(constraints: MatchResources | None) -> Matcher:
    """Compiles the matchConstraints of a policy, or the matchResources of a binding. None matches everything."""
    if constraints is None:
        return Matcher(())
    return Matcher(
        tuple(map(compile_rule, constraints.resourceRules)),
        tuple(map(compile_rule, constraints.excludeResourceRules)),
        _selector(constraints.namespaceSelector),
        _selector(constraints.objectSelector),
        # Defaulting sets it; without it upstream does not look for equivalents.
        constraints.matchPolicy == "Equivalent",
    )


def compile_webhook(webhook: MutatingWebhook | ValidatingWebhook) -> Matcher:
    """Compiles the rules and selectors of a webhook."""
    return Matcher(
        tuple(map(compile_rule, webhook.rules)),
        (),
        _selector(webhook.namespaceSelector),
        _selector(webhook.objectSelector),
        webhook.matchPolicy == "Equivalent",
        needs_rules=True,
    )


def _selector(selector: LabelSelectorLike | None) -> Selector | None:
    """A compiled selector; None for one that selects everything, as an absent one does here."""
    if selector is None:
        return None
    compiled = compile_selector(selector)
    return None if compiled.empty else compiled


# -- what matching looks up -----------------------------------------------------------------------


def namespace_labels(
    request: AdmissionAttributes, namespace: Callable[[str], object | None]
) -> Mapping[str, str]:
    """The labels that a namespaceSelector is matched with.

    A Namespace that is created or updated is matched by its new labels. ``namespace`` looks one up by its name.
    """
    if request.resource.id == "namespaces":
        if not request.subresource and request.operation in ("CREATE", "UPDATE"):
            return _labels(request.obj)
        return _labels(namespace(request.name))
    return _labels(namespace(request.namespace))


def _labels(obj: object | None) -> Mapping[str, str]:
    meta = getattr(obj, "metadata", None)
    labels: Mapping[str, str] = _NOTHING if meta is None else meta.labels or _NOTHING
    return labels


class ServedVersions:
    """The versions in which resources are served, found once for each generation of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._by_table: dict[str, tuple[Resource, ...]] = {}

    def __call__(self, resource: Resource) -> tuple[Resource, ...]:
        """The other versions of a resource: those that are kept in the same table."""
        if self._registry.generation != self._generation:
            self._by_table.clear()
            self._generation = self._registry.generation
        found = self._by_table.get(resource.table)
        if found is None:
            found = self._by_table[resource.table] = tuple(self._sharing(resource.table))
        mine = (resource.group, resource.version)
        return tuple(other for other in found if (other.group, other.version) != mine)

    def _sharing(self, table: str) -> Iterable[Resource]:
        registry = self._registry
        plural = table.partition(".")[0]
        for row in registry.rows():
            if row.plural == plural:
                found = registry.find(row.group, row.version, row.plural)
                if found.table == table:
                    yield found
        for added in registry.added():
            if added.table == table:
                yield added
