"""Where a pod may run: affinity, tolerations, spreading."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.api.label_syntax import key_errors, value_errors
from steersman.server.validation import names
from steersman.server.validation.field_errors import Found
from steersman.server.validation.selectors import label_selector, node_selector, node_term

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSIONS = ("Honor", "Ignore")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHTS = "must be in the range 1-100"


def affinity(found: Found, path: str, given: v1.Affinity) -> None:
    nodes = given.nodeAffinity
    if nodes is not None:
        if nodes.requiredDuringSchedulingIgnoredDuringExecution is not None:
            node_selector(
                found,
                f"{path}.nodeAffinity.{_REQUIRED}",
                nodes.requiredDuringSchedulingIgnoredDuringExecution,
            )
        for i, term in enumerate(nodes.preferredDuringSchedulingIgnoredDuringExecution):
            at = f"{path}.nodeAffinity.{_PREFERRED}[{i}]"
            _weight(found, at, term.weight)
            node_term(found, f"{at}.preference", term.preference, any_value=True)
    for name in ("podAffinity", "podAntiAffinity"):
        pods: v1.PodAffinity | v1.PodAntiAffinity | None = getattr(given, name)
        if pods is None:
            continue
        for i, wanted in enumerate(pods.requiredDuringSchedulingIgnoredDuringExecution):
            _pod_term(found, f"{path}.{name}.{_REQUIRED}[{i}]", wanted)
        for i, weighted in enumerate(pods.preferredDuringSchedulingIgnoredDuringExecution):
            at = f"{path}.{name}.{_PREFERRED}[{i}]"
            _weight(found, at, weighted.weight)
            _pod_term(found, f"{at}.podAffinityTerm", weighted.podAffinityTerm)


def _weight(found: Found, path: str, weight: int) -> None:
    if not 1 <= weight <= 100:
        found.invalid(f"{path}.weight", weight, _WEIGHTS)


def _pod_term(found: Found, path: str, term: v1.PodAffinityTerm) -> None:
    label_selector(found, f"{path}.labelSelector", term.labelSelector)
    label_selector(found, f"{path}.namespaceSelector", term.namespaceSelector)
    for name in term.namespaces:
        found.each(f"{path}.namespace", name, names.label(name))
    _label_keys(found, path, term.matchLabelKeys, term.mismatchLabelKeys, term.labelSelector)
    if not term.topologyKey:
        found.required(f"{path}.topologyKey", "can not be empty")
    found.each(f"{path}.topologyKey", term.topologyKey, key_errors(term.topologyKey))


def _label_keys(
    found: Found,
    path: str,
    matching: tuple[str, ...],
    differing: tuple[str, ...],
    selector: LabelSelector | None,
) -> None:
    for name, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", differing)):
        if keys and selector is None:
            found.forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
            continue
        for i, key in enumerate(keys):
            found.each(f"{path}.{name}[{i}]", key, key_errors(key))
    if selector is not None:
        places = {key: i for i, key in enumerate(matching)}
        selected = set(selector.matchLabels)
        for expression in selector.matchExpressions:
            key = expression.key
            if key in places and key in selected:
                both = "exists in both matchLabelKeys and labelSelector"
                found.invalid(f"{path}[{places[key]}]", key, both)
            selected.add(key)
    for i, key in enumerate(matching):
        if key in differing:
            both = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.invalid(f"{path}.matchLabelKeys[{i}]", key, both)


# -- taints -----------------------------------------------------------------------------------


def tolerations(found: Found, path: str, given: tuple[v1.Toleration, ...]) -> None:
    for i, toleration in enumerate(given):
        at = f"{path}[{i}]"
        key, operator, value, effect = (
            toleration.key,
            toleration.operator,
            toleration.value,
            toleration.effect,
        )
        if key:
            found.each(f"{at}.key", key, key_errors(key))
        elif operator != "Exists":
            found.invalid(
                f"{at}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        if toleration.tolerationSeconds is not None and effect != "NoExecute":
            needs = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.invalid(f"{at}.effect", effect, needs)
        if operator in ("Equal", ""):
            if errors := value_errors(value):
                found.invalid(f"{at}.operator", value, ";".join(errors))
        elif operator == "Exists":
            if value:
                found.invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            choices = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            found.unsupported(f"{at}.operator", operator, choices)
        if effect and effect not in EFFECTS:
            found.unsupported(f"{at}.effect", effect, EFFECTS)


# -- spreading --------------------------------------------------------------------------------


def spread(found: Found, path: str, constraints: tuple[v1.TopologySpreadConstraint, ...]) -> None:
    for i, constraint in enumerate(constraints):
        at = f"{path}[{i}]"
        key, action = constraint.topologyKey, constraint.whenUnsatisfiable
        found.not_positive(f"{at}.maxSkew", constraint.maxSkew)
        if not key:
            found.required(f"{at}.topologyKey", "can not be empty")
        if action not in _ACTIONS:
            found.unsupported(f"{at}.whenUnsatisfiable", action, _ACTIONS)
        if any((c.topologyKey, c.whenUnsatisfiable) == (key, action) for c in constraints[i + 1 :]):
            found.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        if constraint.minDomains is not None:
            found.not_positive(f"{at}.minDomains", constraint.minDomains)
            if action != "DoNotSchedule":
                only = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                found.invalid(f"{at}.minDomains", constraint.minDomains, only)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = getattr(constraint, name)
            if policy is not None and policy not in _INCLUSIONS:
                found.unsupported(f"{at}.{name}", policy, _INCLUSIONS)
        _label_keys(found, at, constraint.matchLabelKeys, (), constraint.labelSelector)
        label_selector(found, f"{at}.labelSelector", constraint.labelSelector)
