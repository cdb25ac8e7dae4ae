"""clusterrole-aggregation-controller (a decision): fills in the rules of ClusterRoles that have an aggregationRule."""

from __future__ import annotations

from collections.abc import Iterable
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
AGGREGATED = "aggregated"
"""The index of ClusterRoles that have an aggregationRule."""


class Observation(msgspec.Struct, frozen=True):
    """A ClusterRole and all others, sorted by name."""

    role: ClusterRole
    others: tuple[ClusterRole, ...]


def observe(caches: Caches, key: Key) -> Observation | None:
    role = caches[CLUSTERROLES].get(key)
    if role is None:
        return None
    others = (one for one in caches[CLUSTERROLES].list() if one.metadata.name != key.name)
    return Observation(role, tuple(sorted(others, key=lambda one: one.metadata.name)))


def aggregated_rules(seen: Observation) -> tuple[PolicyRule, ...]:
    """The rules of all selected ClusterRoles without duplicates, in the order of selectors and names."""
    rules: dict[PolicyRule, None] = {}
    for selector in seen.role.aggregationRule.clusterRoleSelectors if seen.role.aggregationRule else ():
        try:
            matches = compile_selector(selector).matches
        except ValueError as error:
            raise InvalidSpec(f"aggregationRule: {error}") from None
        for other in seen.others:
            if matches(other.metadata.labels):
                rules.update((_comparable(rule), None) for rule in other.rules or ())
    return tuple(rules)


def _comparable(rule: PolicyRule) -> PolicyRule:
    """A rule as a plain `PolicyRule`, whatever type the cache holds; missing verbs are empty."""
    return PolicyRule(
        apiGroups=rule.apiGroups,
        nonResourceURLs=rule.nonResourceURLs,
        resourceNames=rule.resourceNames,
        resources=rule.resources,
        verbs=rule.verbs or (),
    )


def _document(rule: PolicyRule) -> dict[str, Any]:
    lists = {
        "apiGroups": rule.apiGroups,
        "nonResourceURLs": rule.nonResourceURLs,
        "resourceNames": rule.resourceNames,
        "resources": rule.resources,
    }
    document = {name: list(values) for name, values in lists.items() if values}
    return {**document, "verbs": list(rule.verbs or ())}


async def decide(seen: Observation, now: datetime) -> Verdict:
    if seen.role.aggregationRule is None:
        return Rest("no aggregationRule")
    rules = aggregated_rules(seen)
    if rules == tuple(map(_comparable, seen.role.rules or ())):
        return Rest("rules up to date")
    # The controller may escalate: it can write rules it does not hold itself. An apply patch of the rules
    # alone cannot change anything else.
    body = {
        "apiVersion": CLUSTERROLES.api_version,
        "kind": CLUSTERROLES.name,
        "metadata": {"name": seen.role.metadata.name},
        # differs: upstream leaves empty rules out of the patch, which keeps those that another manager applied.
        "rules": [_document(rule) for rule in rules],
    }
    await Patch(seen.role, body, PatchType.APPLY, field_manager=NAME, force=True)
    return Rest(f"rules updated: {len(rules)}")


def _enqueue_aggregating(caches: Caches, change: Change[ClusterRole]) -> Iterable[Key]:
    """All ClusterRoles with an aggregationRule: they are few, and any role may be part of them."""
    return (role.key for role in caches[CLUSTERROLES].by(AGGREGATED, True))


def _is_aggregated(role: ClusterRole) -> Iterable[bool]:
    return () if role.aggregationRule is None else (True,)


controller = Controller(
    name=NAME,
    aliases=("clusterrole-aggregation",),
    watches=(Watch(CLUSTERROLES, to=_enqueue_aggregating, indexes={AGGREGATED: _is_aggregated}),),
    workers=5,
    observe=observe,
    decide=decide,
)
