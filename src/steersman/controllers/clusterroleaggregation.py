"""clusterrole-aggregation (a decision): a ClusterRole with an aggregation rule has the rules of those it selects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.kinds.rbac import CLUSTERROLES, ClusterRole, PolicyRule
from steersman.api.label_selectors import compile_selector
from steersman.api.scheme import Key
from steersman.intent.actions import Patch, PatchType
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

NAME = "clusterrole-aggregation-controller"


class Seen(msgspec.Struct, frozen=True):
    role: ClusterRole
    others: tuple[ClusterRole, ...]
    """By name."""


def observe(caches: Caches, key: Key) -> Seen | None:
    role = caches[CLUSTERROLES].get(key)
    if role is None:
        return None
    others = (one for one in caches[CLUSTERROLES].list() if one.metadata.name != key.name)
    return Seen(role, tuple(sorted(others, key=lambda one: one.metadata.name)))


def aggregated(seen: Seen) -> tuple[PolicyRule, ...]:
    """The rules of all selected roles, each once, in the order of selectors and names."""
    rules: dict[PolicyRule, None] = {}
    for selector in seen.role.aggregationRule.clusterRoleSelectors if seen.role.aggregationRule else ():
        try:
            matches = compile_selector(selector).matches
        except ValueError as error:
            raise InvalidSpec(f"aggregationRule: {error}") from None
        for other in seen.others:
            if matches(other.metadata.labels):
                rules.update((_view(rule), None) for rule in other.rules or ())
    return tuple(rules)


def _view(rule: PolicyRule) -> PolicyRule:
    """Comparable, whatever type the cache holds; no verbs are the same as none given."""
    return PolicyRule(
        apiGroups=rule.apiGroups,
        nonResourceURLs=rule.nonResourceURLs,
        resourceNames=rule.resourceNames,
        resources=rule.resources,
        verbs=rule.verbs or (),
    )


def _document(rule: PolicyRule) -> dict[str, Any]:
    fields = ("apiGroups", "nonResourceURLs", "resourceNames", "resources")
    document = {name: list(getattr(rule, name)) for name in fields if getattr(rule, name)}
    return {**document, "verbs": list(rule.verbs or ())}


async def decide(seen: Seen, now: datetime) -> Verdict:
    if seen.role.aggregationRule is None:
        return Rest("aggregates nothing")
    rules = aggregated(seen)
    if rules == tuple(map(_view, seen.role.rules or ())):
        return Rest("has the rules of all it selects")
    # Its role lets it update any ClusterRole without having the rights itself, which only an
    # apply of the rules alone keeps from being a way to change anything else.
    body = {
        "apiVersion": CLUSTERROLES.api_version,
        "kind": CLUSTERROLES.name,
        "metadata": {"name": seen.role.metadata.name},
        "rules": [_document(rule) for rule in rules],
    }
    await Patch(seen.role, body, PatchType.APPLY, field_manager=NAME, force=True)
    return Rest(f"has {len(rules)} rules now")


def _aggregating(caches: Caches, change: Change[ClusterRole]) -> Iterable[Key]:
    """Any role may be part of any that aggregates: there are few of those, so all look."""

    def keys() -> Iterator[Key]:
        for role in caches[CLUSTERROLES].list():
            if role.aggregationRule is not None:
                yield role.key

    return keys()


controller = Controller(
    name=NAME,
    aliases=("clusterrole-aggregation",),
    watches=(Watch(CLUSTERROLES, to=_aggregating),),
    workers=5,
    observe=observe,
    decide=decide,
)
