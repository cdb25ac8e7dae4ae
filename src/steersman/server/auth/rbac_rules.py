"""PolicyRules: whether a rule allows a request, and whether some rules cover others, exactly as upstream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from steersman.api.generated.rbac_v1 import PolicyRule
from steersman.server.auth.attributes import Attributes, quoted

ALL = "*"
FULL_AUTHORITY = (
    PolicyRule(verbs=(ALL,), apiGroups=(ALL,), resources=(ALL,)),
    PolicyRule(verbs=(ALL,), nonResourceURLs=(ALL,)),
)
"""The rules of cluster-admin."""


# -- rules and requests -----------------------------------------------------------------------


def rule_matches(rule: PolicyRule, attributes: Attributes) -> bool:
    """Whether a rule allows a request, apart from its resource name.

    The name is left to `resource_names`, so that the result can be cached for all names.
    """
    if attributes.verb not in rule.verbs and ALL not in rule.verbs:
        return False
    if attributes.path is not None:
        return any(_url_covers(url, attributes.path) for url in rule.nonResourceURLs)
    if attributes.group not in rule.apiGroups and ALL not in rule.apiGroups:
        return False
    if not attributes.subresource:
        return attributes.resource in rule.resources or ALL in rule.resources
    return (
        f"{attributes.resource}/{attributes.subresource}" in rule.resources
        or ALL in rule.resources
        or f"*/{attributes.subresource}" in rule.resources
    )


def resource_names(rule: PolicyRule, attributes: Attributes) -> frozenset[str] | None:
    """The names of objects that a rule is restricted to, or None for all. Paths have no names."""
    return frozenset(rule.resourceNames) if rule.resourceNames and attributes.path is None else None


def rule_allows(rule: PolicyRule, attributes: Attributes) -> bool:
    """Whether a rule allows a request."""
    if not rule_matches(rule, attributes):
        return False
    only = resource_names(rule, attributes)
    return only is None or attributes.name in only


def _url_covers(rule: str, url: str) -> bool:
    return rule == url or (rule.endswith(ALL) and url.startswith(rule.rstrip(ALL)))


# -- covering rules ---------------------------------------------------------------------------


def uncovered_rules(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The wanted rules that the held ones do not cover, broken down to single permissions."""
    parts = chain.from_iterable(map(_parts, wanted))
    return [part for part in parts if not any(_covers(rule, part) for rule in held)]


def _parts(rule: PolicyRule) -> Iterable[PolicyRule]:
    """The rule as rules of one verb, one resource and at most one name each."""
    for group in rule.apiGroups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.resourceNames or (None,):
                    yield PolicyRule(
                        apiGroups=(group,),
                        resources=(resource,),
                        verbs=(verb,),
                        resourceNames=() if name is None else (name,),
                    )
    for url in rule.nonResourceURLs:
        for verb in rule.verbs:
            yield PolicyRule(nonResourceURLs=(url,), verbs=(verb,))


def _covers(held: PolicyRule, part: PolicyRule) -> bool:
    return (
        _has(held.verbs, part.verbs)
        and _has(held.apiGroups, part.apiGroups)
        and all(_resource_covered(held.resources, resource) for resource in part.resources)
        and all(
            any(_url_covers(url, wanted) for url in held.nonResourceURLs) for wanted in part.nonResourceURLs
        )
        and (
            not held.resourceNames
            or (bool(part.resourceNames) and part.resourceNames[0] in held.resourceNames)
        )
    )


def _has(held: Sequence[str], wanted: Sequence[str]) -> bool:
    return ALL in held or all(one in held for one in wanted)


def _resource_covered(held: Sequence[str], resource: str) -> bool:
    if ALL in held or resource in held:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in held


def compact(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Rules with those for the same single resource merged, for messages."""
    found: list[PolicyRule] = []
    simple: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for rule in rules:
        if len(rule.apiGroups) == len(rule.resources) == 1 and len(rule.resourceNames) <= 1:
            key = (rule.apiGroups, rule.resources, rule.resourceNames)
            simple.setdefault(key, []).extend(rule.verbs)
        else:
            found.append(rule)
    found += [
        PolicyRule(apiGroups=groups, resources=resources, resourceNames=only, verbs=tuple(verbs))
        for (groups, resources, only), verbs in simple.items()
    ]
    return found


def rule_text(rule: PolicyRule) -> str:
    """A rule as upstream's errors print it: ``{APIGroups:[""], Resources:["pods"], Verbs:["get"]}``."""
    fields = (
        ("APIGroups", rule.apiGroups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.nonResourceURLs),
        ("ResourceNames", rule.resourceNames),
        ("Verbs", rule.verbs),
    )
    return f"{{{', '.join(f'{name}:{quoted(values)}' for name, values in fields if values)}}}"
