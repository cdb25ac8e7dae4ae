"""What a PolicyRule allows, and whether some rules cover others. Pure, and exactly upstream's."""

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
"""What cluster-admin has."""


# -- one rule, one request --------------------------------------------------------------------


def permits(rule: PolicyRule, asked: Attributes) -> bool:
    """Whether a rule allows a request, to objects of some name at least.

    The name is left to `names`, so that what is permitted can be remembered for all names.
    """
    if asked.verb not in rule.verbs and ALL not in rule.verbs:
        return False
    if asked.path is not None:
        return any(_url_covers(url, asked.path) for url in rule.nonResourceURLs)
    if asked.group not in rule.apiGroups and ALL not in rule.apiGroups:
        return False
    if not asked.subresource:
        return asked.resource in rule.resources or ALL in rule.resources
    return (
        f"{asked.resource}/{asked.subresource}" in rule.resources
        or ALL in rule.resources
        or f"*/{asked.subresource}" in rule.resources
    )


def names(rule: PolicyRule, asked: Attributes) -> frozenset[str] | None:
    """The only objects a rule is about, or None for all. Paths have no names."""
    return frozenset(rule.resourceNames) if rule.resourceNames and asked.path is None else None


def allows(rule: PolicyRule, asked: Attributes) -> bool:
    """Whether a rule allows a request."""
    if not permits(rule, asked):
        return False
    only = names(rule, asked)
    return only is None or asked.name in only


def _url_covers(rule: str, url: str) -> bool:
    return rule == url or (rule.endswith(ALL) and url.startswith(rule.rstrip(ALL)))


# -- rules against rules ----------------------------------------------------------------------


def missing(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Which of the wanted rules are not covered by those held, broken down to single permissions."""
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
    """Rules for the same single resource made one, so that a list of them can be read."""
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


def describe(rule: PolicyRule) -> str:
    """A rule as upstream's refusals print it: ``{APIGroups:[""], Resources:["pods"], Verbs:["get"]}``."""
    fields = (
        ("APIGroups", rule.apiGroups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.nonResourceURLs),
        ("ResourceNames", rule.resourceNames),
        ("Verbs", rule.verbs),
    )
    return f"{{{', '.join(f'{name}:{quoted(values)}' for name, values in fields if values)}}}"
