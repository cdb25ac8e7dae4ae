"""Inter-pod topology: pod affinity, anti-affinity and topology spread constraints. Pure functions.

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
from steersman.sim.scheduler.node_info import NodeInfo, NodeInfos, PodInfo

SPREAD = "node(s) didn't match pod topology spread constraints"
UNLABELLED = SPREAD + " (missing required label)"
TOGETHER = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
GUARDED = "node(s) didn't satisfy existing pods anti-affinity rules"


class Rule(msgspec.Struct, frozen=True):
    """A required affinity term, and how many pods match it in each topology domain."""

    key: str
    counts: Mapping[str, int]
    alone: bool = False
    """Whether no pod matches the term yet, and the pod itself does: the first pod may go anywhere."""


class Evenness(msgspec.Struct, frozen=True):
    """A topology spread constraint, and how many pods each domain has."""

    key: str
    counts: Mapping[str, int]
    least: int
    most_skew: int
    itself: int


class Surroundings(msgspec.Struct, frozen=True):
    """The topology that a pod depends on."""

    spread: tuple[Evenness, ...]
    pod_affinity: tuple[Rule, ...]
    pod_anti_affinity: tuple[Rule, ...]
    with_anti_affinity: tuple[tuple[str, str], ...]
    """Topology keys and values excluded by anti-affinity."""
    preferred: tuple[tuple[int, Rule], ...]
    loose: tuple[Evenness, ...]


def topology_of(new: PodInfo, node_infos: NodeInfos) -> Surroundings:
    """Compute the topology that a pod depends on."""
    requirements, every = new.requirements, list(node_infos)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    pod_affinity: Sequence[v1.PodAffinityTerm] = getattr(requirements.pod_affinity, required, ())
    pod_anti_affinity: Sequence[v1.PodAffinityTerm] = getattr(requirements.pod_anti_affinity, required, ())
    liked: Sequence[v1.WeightedPodAffinityTerm] = getattr(requirements.pod_affinity, preferred, ())
    disliked: Sequence[v1.WeightedPodAffinityTerm] = getattr(requirements.pod_anti_affinity, preferred, ())
    rules = [_rule(term, new, every) for term in pod_affinity]
    first = all(not rule.counts for rule in rules) and all(_meets(term, new, new) for term in pod_affinity)
    return Surroundings(
        spread=tuple(
            _even(each, new, every)
            for each in requirements.spread
            if each.whenUnsatisfiable == "DoNotSchedule"
        ),
        pod_affinity=tuple(Rule(rule.key, rule.counts, first) for rule in rules),
        pod_anti_affinity=tuple(_rule(term, new, every) for term in pod_anti_affinity),
        with_anti_affinity=_guarded(new, node_infos),
        preferred=(
            *((each.weight, _rule(each.podAffinityTerm, new, every)) for each in liked),
            *((-each.weight, _rule(each.podAffinityTerm, new, every)) for each in disliked),
        ),
        loose=tuple(
            _even(each, new, every)
            for each in requirements.spread
            if each.whenUnsatisfiable != "DoNotSchedule"
        ),
    )


def filter_reasons(topology_view: Surroundings, node_info: NodeInfo) -> tuple[str, ...]:
    """Why a node does not fit a pod because of other pods."""
    labels = node_info.labels
    for even in topology_view.spread:
        domain = labels.get(even.key)
        if domain is None:
            return (UNLABELLED,)
        if even.counts.get(domain, 0) + even.itself - even.least > even.most_skew:
            return (SPREAD,)
    for rule in topology_view.pod_affinity:
        domain = labels.get(rule.key)
        if domain is None or not (rule.counts.get(domain) or rule.alone):
            return (TOGETHER,)
    for rule in topology_view.pod_anti_affinity:
        domain = labels.get(rule.key)
        if domain is not None and rule.counts.get(domain):
            return (APART,)
    if any(labels.get(key) == domain for key, domain in topology_view.with_anti_affinity):
        return (GUARDED,)
    return ()


def score(topology_view: Surroundings, node_info: NodeInfo) -> int:
    """The score of a node because of other pods."""
    total = 0.0
    for weight, rule in topology_view.preferred:
        domain = node_info.labels.get(rule.key)
        if domain is not None and rule.counts.get(domain):
            total += 2.0 * weight
    for even in topology_view.loose:
        most = max(even.counts.values(), default=0)
        count = even.counts.get(node_info.labels.get(even.key, ""), most)
        total += 200.0 * (most - count) / most if most else 0.0
    return round(total * SCALE)


# -- computing --------------------------------------------------------------------------------


def _rule(term: v1.PodAffinityTerm, new: PodInfo, node_infos: Iterable[NodeInfo]) -> Rule:
    counts: dict[str, int] = {}
    for node_info in node_infos:
        domain = node_info.labels.get(term.topologyKey)
        if domain is not None:
            found = sum(_meets(term, new, other) for other in node_info.pods.values())
            if found:
                counts[domain] = counts.get(domain, 0) + found
    return Rule(term.topologyKey, counts)


def _meets(term: v1.PodAffinityTerm, owner: PodInfo, other: PodInfo) -> bool:
    """Whether a pod matches an affinity term of ``owner``."""
    everywhere = term.namespaceSelector is not None and not (
        term.namespaceSelector.matchLabels or term.namespaceSelector.matchExpressions
    )
    spaces = term.namespaces or (() if term.namespaceSelector is not None else (owner.key.namespace,))
    if not everywhere and other.key.namespace not in spaces:
        return False
    return _matches(term.labelSelector, term.matchLabelKeys, owner, other)


def _matches(selector: LabelSelector | None, keys: tuple[str, ...], owner: PodInfo, other: PodInfo) -> bool:
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


def _even(constraint: v1.TopologySpreadConstraint, new: PodInfo, node_infos: Iterable[NodeInfo]) -> Evenness:
    key, keys, selector = constraint.topologyKey, constraint.matchLabelKeys, constraint.labelSelector
    counts: dict[str, int] = {}
    for node_info in node_infos:
        domain = node_info.labels.get(key)
        if domain is None or not selected(new.requirements, node_info):
            continue
        counts[domain] = counts.get(domain, 0) + sum(
            other.key.namespace == new.key.namespace
            and not other.terminating
            and _matches(selector, keys, new, other)
            for other in node_info.pods.values()
        )
    least = min(counts.values(), default=0)
    if constraint.minDomains is not None and len(counts) < constraint.minDomains:
        least = 0
    return Evenness(key, counts, least, constraint.maxSkew, int(_matches(selector, keys, new, new)))


def _guarded(new: PodInfo, node_infos: NodeInfos) -> tuple[tuple[str, str], ...]:
    found = []
    for key, other in node_infos.with_anti_affinity.items():
        node_info = node_infos.get(node_infos.node_of(key) or "")
        if node_info is None or other.requirements.pod_anti_affinity is None or key == new.key:
            continue
        for term in other.requirements.pod_anti_affinity.requiredDuringSchedulingIgnoredDuringExecution:
            domain = node_info.labels.get(term.topologyKey)
            if domain is not None and _meets(term, other, new):
                found.append((term.topologyKey, domain))
    return tuple(dict.fromkeys(found))
