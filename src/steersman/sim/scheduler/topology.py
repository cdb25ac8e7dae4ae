"""Where other pods are, and what that means for one more: affinity, anti-affinity and spreading. Pure.

A subset: ``namespaceSelector`` is understood where it is empty (all namespaces); one with terms selects
nothing, as namespaces' labels are not known here. Pods that are being deleted still count for affinity, and
no longer for spreading. ``nodeTaintsPolicy`` is always Ignore and ``nodeAffinityPolicy`` always Honor,
which are the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import LabelSelector, LabelSelectorRequirement
from steersman.api.label_selectors import compile_selector
from steersman.sim.scheduler.filters import SCALE, selected
from steersman.sim.scheduler.node_info import Host, Hosts, Tenant

SPREAD = "node(s) didn't match pod topology spread constraints"
UNLABELLED = SPREAD + " (missing required label)"
TOGETHER = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
GUARDED = "node(s) didn't satisfy existing pods anti-affinity rules"


class Rule(msgspec.Struct, frozen=True):
    """A required term, and how often it is met in each domain of its topology."""

    key: str
    counts: Mapping[str, int]
    alone: bool = False
    """No pod meets it anywhere, and the pod itself does: somebody has to be the first."""


class Evenness(msgspec.Struct, frozen=True):
    """A spread constraint, and how many pods each domain has."""

    key: str
    counts: Mapping[str, int]
    least: int
    most_skew: int
    itself: int


class Surroundings(msgspec.Struct, frozen=True):
    """All a pod needs to know of where others are."""

    spread: tuple[Evenness, ...]
    together: tuple[Rule, ...]
    apart: tuple[Rule, ...]
    guarded: tuple[tuple[str, str], ...]
    """Topology keys and values no pod like this may go to."""
    preferred: tuple[tuple[int, Rule], ...]
    loose: tuple[Evenness, ...]


def survey(new: Tenant, hosts: Hosts) -> Surroundings:
    """Look around on behalf of a pod."""
    wants, every = new.demand, list(hosts)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    together: Sequence[v1.PodAffinityTerm] = getattr(wants.together, required, ())
    apart: Sequence[v1.PodAffinityTerm] = getattr(wants.apart, required, ())
    liked: Sequence[v1.WeightedPodAffinityTerm] = getattr(wants.together, preferred, ())
    disliked: Sequence[v1.WeightedPodAffinityTerm] = getattr(wants.apart, preferred, ())
    rules = [_rule(term, new, every) for term in together]
    first = all(not rule.counts for rule in rules) and all(_meets(term, new, new) for term in together)
    return Surroundings(
        spread=tuple(
            _even(each, new, every) for each in wants.spread if each.whenUnsatisfiable == "DoNotSchedule"
        ),
        together=tuple(Rule(rule.key, rule.counts, first) for rule in rules),
        apart=tuple(_rule(term, new, every) for term in apart),
        guarded=_guarded(new, hosts),
        preferred=(
            *((each.weight, _rule(each.podAffinityTerm, new, every)) for each in liked),
            *((-each.weight, _rule(each.podAffinityTerm, new, every)) for each in disliked),
        ),
        loose=tuple(
            _even(each, new, every) for each in wants.spread if each.whenUnsatisfiable != "DoNotSchedule"
        ),
    )


def refusals(around: Surroundings, host: Host) -> tuple[str, ...]:
    """Why a node will not do, for where other pods are."""
    labels = host.labels
    for even in around.spread:
        domain = labels.get(even.key)
        if domain is None:
            return (UNLABELLED,)
        if even.counts.get(domain, 0) + even.itself - even.least > even.most_skew:
            return (SPREAD,)
    for rule in around.together:
        domain = labels.get(rule.key)
        if domain is None or not (rule.counts.get(domain) or rule.alone):
            return (TOGETHER,)
    for rule in around.apart:
        domain = labels.get(rule.key)
        if domain is not None and rule.counts.get(domain):
            return (APART,)
    if any(labels.get(key) == domain for key, domain in around.guarded):
        return (GUARDED,)
    return ()


def score(around: Surroundings, host: Host) -> int:
    """How well a node would do, for where other pods are."""
    total = 0.0
    for weight, rule in around.preferred:
        domain = host.labels.get(rule.key)
        if domain is not None and rule.counts.get(domain):
            total += 2.0 * weight
    for even in around.loose:
        most = max(even.counts.values(), default=0)
        count = even.counts.get(host.labels.get(even.key, ""), most)
        total += 200.0 * (most - count) / most if most else 0.0
    return round(total * SCALE)


# -- looking around ---------------------------------------------------------------------------


def _rule(term: v1.PodAffinityTerm, new: Tenant, hosts: Iterable[Host]) -> Rule:
    counts: dict[str, int] = {}
    for host in hosts:
        domain = host.labels.get(term.topologyKey)
        if domain is not None:
            found = sum(_meets(term, new, other) for other in host.tenants.values())
            if found:
                counts[domain] = counts.get(domain, 0) + found
    return Rule(term.topologyKey, counts)


def _meets(term: v1.PodAffinityTerm, owner: Tenant, other: Tenant) -> bool:
    """Whether a pod is one of those a term of the owner's is about."""
    everywhere = term.namespaceSelector is not None and not (
        term.namespaceSelector.matchLabels or term.namespaceSelector.matchExpressions
    )
    spaces = term.namespaces or (() if term.namespaceSelector is not None else (owner.key.namespace,))
    if not everywhere and other.key.namespace not in spaces:
        return False
    return _matches(term.labelSelector, term.matchLabelKeys, owner, other)


def _matches(selector: LabelSelector | None, keys: tuple[str, ...], owner: Tenant, other: Tenant) -> bool:
    if selector is None:
        return False
    if keys:
        same = tuple(
            LabelSelectorRequirement(key=key, operator="In", values=(owner.labels[key],))
            for key in keys
            if key in owner.labels
        )
        selector = LabelSelector(
            matchLabels=selector.matchLabels, matchExpressions=(*selector.matchExpressions, *same)
        )
    return compile_selector(selector).matches(other.labels)


def _even(constraint: v1.TopologySpreadConstraint, new: Tenant, hosts: Iterable[Host]) -> Evenness:
    key, keys, selector = constraint.topologyKey, constraint.matchLabelKeys, constraint.labelSelector
    counts: dict[str, int] = {}
    for host in hosts:
        domain = host.labels.get(key)
        if domain is None or not selected(new.demand, host):
            continue
        counts[domain] = counts.get(domain, 0) + sum(
            other.key.namespace == new.key.namespace
            and not other.leaving
            and _matches(selector, keys, new, other)
            for other in host.tenants.values()
        )
    least = min(counts.values(), default=0)
    if constraint.minDomains is not None and len(counts) < constraint.minDomains:
        least = 0
    return Evenness(key, counts, least, constraint.maxSkew, int(_matches(selector, keys, new, new)))


def _guarded(new: Tenant, hosts: Hosts) -> tuple[tuple[str, str], ...]:
    found = []
    for key, other in hosts.guarded.items():
        host = hosts.get(hosts.home(key) or "")
        if host is None or other.demand.apart is None or key == new.key:
            continue
        for term in other.demand.apart.requiredDuringSchedulingIgnoredDuringExecution:
            domain = host.labels.get(term.topologyKey)
            if domain is not None and _meets(term, other, new):
                found.append((term.topologyKey, domain))
    return tuple(dict.fromkeys(found))
