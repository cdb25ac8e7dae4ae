"""Validation of affinity, tolerations and topology spread constraints."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.api.label_syntax import key_errors, value_errors
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.selectors import (
    validate_label_selector,
    validate_node_selector,
    validate_node_selector_term,
)

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION_POLICIES = ("Honor", "Ignore")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHTS = "must be in the range 1-100"


def validate_affinity(errors: FieldErrors, path: str, affinity: v1.Affinity) -> None:
    nodes = affinity.nodeAffinity
    if nodes is not None:
        if nodes.requiredDuringSchedulingIgnoredDuringExecution is not None:
            validate_node_selector(
                errors,
                f"{path}.nodeAffinity.{_REQUIRED}",
                nodes.requiredDuringSchedulingIgnoredDuringExecution,
            )
        for i, term in enumerate(nodes.preferredDuringSchedulingIgnoredDuringExecution):
            at = f"{path}.nodeAffinity.{_PREFERRED}[{i}]"
            _validate_weight(errors, at, term.weight)
            validate_node_selector_term(errors, f"{at}.preference", term.preference, any_value=True)
    pods: v1.PodAffinity | v1.PodAntiAffinity | None
    for name, pods in (("podAffinity", affinity.podAffinity), ("podAntiAffinity", affinity.podAntiAffinity)):
        if pods is None:
            continue
        for i, wanted in enumerate(pods.requiredDuringSchedulingIgnoredDuringExecution):
            _validate_pod_affinity_term(errors, f"{path}.{name}.{_REQUIRED}[{i}]", wanted)
        for i, weighted in enumerate(pods.preferredDuringSchedulingIgnoredDuringExecution):
            at = f"{path}.{name}.{_PREFERRED}[{i}]"
            _validate_weight(errors, at, weighted.weight)
            _validate_pod_affinity_term(errors, f"{at}.podAffinityTerm", weighted.podAffinityTerm)


def _validate_weight(errors: FieldErrors, path: str, weight: int) -> None:
    if not 1 <= weight <= 100:
        errors.invalid(f"{path}.weight", weight, _WEIGHTS)


def _validate_pod_affinity_term(errors: FieldErrors, path: str, term: v1.PodAffinityTerm) -> None:
    validate_label_selector(errors, f"{path}.labelSelector", term.labelSelector)
    validate_label_selector(errors, f"{path}.namespaceSelector", term.namespaceSelector)
    for name in term.namespaces:
        errors.invalid_each(f"{path}.namespace", name, names.dns1123_label(name))
    _validate_label_keys(errors, path, term.matchLabelKeys, term.mismatchLabelKeys, term.labelSelector)
    if not term.topologyKey:
        errors.required(f"{path}.topologyKey", "can not be empty")
    errors.invalid_each(f"{path}.topologyKey", term.topologyKey, key_errors(term.topologyKey))


def _validate_label_keys(
    errors: FieldErrors,
    path: str,
    matching: tuple[str, ...],
    differing: tuple[str, ...],
    selector: LabelSelector | None,
) -> None:
    for name, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", differing)):
        if keys and selector is None:
            errors.forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
            continue
        for i, key in enumerate(keys):
            errors.invalid_each(f"{path}.{name}[{i}]", key, key_errors(key))
    if selector is not None:
        places = {key: i for i, key in enumerate(matching)}
        selected = set(selector.matchLabels)
        for expression in selector.matchExpressions:
            key = expression.key
            if key in places and key in selected:
                both = "exists in both matchLabelKeys and labelSelector"
                errors.invalid(f"{path}[{places[key]}]", key, both)
            selected.add(key)
    for i, key in enumerate(matching):
        if key in differing:
            both = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.invalid(f"{path}.matchLabelKeys[{i}]", key, both)


# -- taints -----------------------------------------------------------------------------------


def validate_tolerations(errors: FieldErrors, path: str, tolerations: tuple[v1.Toleration, ...]) -> None:
    for i, toleration in enumerate(tolerations):
        at = f"{path}[{i}]"
        key, operator, value, effect = (
            toleration.key,
            toleration.operator,
            toleration.value,
            toleration.effect,
        )
        if key:
            errors.invalid_each(f"{at}.key", key, key_errors(key))
        elif operator != "Exists":
            errors.invalid(
                f"{at}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        if toleration.tolerationSeconds is not None and effect != "NoExecute":
            needs = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.invalid(f"{at}.effect", effect, needs)
        if operator in ("Equal", ""):
            if messages := value_errors(value):
                errors.invalid(f"{at}.operator", value, ";".join(messages))
        elif operator == "Exists":
            if value:
                errors.invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            choices = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            errors.not_supported(f"{at}.operator", operator, choices)
        if effect and effect not in EFFECTS:
            errors.not_supported(f"{at}.effect", effect, EFFECTS)


# -- spreading --------------------------------------------------------------------------------


def validate_topology_spread(
    errors: FieldErrors, path: str, constraints: tuple[v1.TopologySpreadConstraint, ...]
) -> None:
    for i, constraint in enumerate(constraints):
        at = f"{path}[{i}]"
        key, action = constraint.topologyKey, constraint.whenUnsatisfiable
        errors.positive(f"{at}.maxSkew", constraint.maxSkew)
        if not key:
            errors.required(f"{at}.topologyKey", "can not be empty")
        if action not in _UNSATISFIABLE_ACTIONS:
            errors.not_supported(f"{at}.whenUnsatisfiable", action, _UNSATISFIABLE_ACTIONS)
        if any((c.topologyKey, c.whenUnsatisfiable) == (key, action) for c in constraints[i + 1 :]):
            errors.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        if constraint.minDomains is not None:
            errors.positive(f"{at}.minDomains", constraint.minDomains)
            if action != "DoNotSchedule":
                only = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.invalid(f"{at}.minDomains", constraint.minDomains, only)
        for name, policy in (
            ("nodeAffinityPolicy", constraint.nodeAffinityPolicy),
            ("nodeTaintsPolicy", constraint.nodeTaintsPolicy),
        ):
            if policy is not None and policy not in _INCLUSION_POLICIES:
                errors.not_supported(f"{at}.{name}", policy, _INCLUSION_POLICIES)
        _validate_label_keys(errors, at, constraint.matchLabelKeys, (), constraint.labelSelector)
        validate_label_selector(errors, f"{at}.labelSelector", constraint.labelSelector)
