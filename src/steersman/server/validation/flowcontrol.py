"""Validation of FlowSchemas and PriorityLevelConfigurations.

differs: no requests are queued here, so there are no mandatory schemas and levels to protect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

from steersman.api.generated import flowcontrol_v1 as v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

_ALL = "*"
_EXEMPT = "exempt"
_MAX_PRECEDENCE = 10_000
"""The largest valid matchingPrecedence."""
_MAX_QUEUES = 10_000_000
_MAX_HASH_BITS = 60
_DISTINGUISHER_METHODS = ("ByNamespace", "ByUser")
_LEVEL_TYPES = ("Exempt", "Limited")
_RESPONSE_TYPES = ("Queue", "Reject")
_SUBJECT_FIELDS = {"ServiceAccount": "serviceAccount", "Group": "group", "User": "user"}
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")


# -- FlowSchemas ------------------------------------------------------------------------------


def validate_flow_schema(errors: FieldErrors, obj: v1.FlowSchema) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_flow_schema_spec(errors, obj)


def validate_flow_schema_update(errors: FieldErrors, new: v1.FlowSchema, old: v1.FlowSchema) -> None:
    meta.validate_object_meta(errors, new.metadata, namespaced=False)
    _validate_flow_schema_spec(errors, new)


def validate_flow_schema_status(errors: FieldErrors, new: v1.FlowSchema, old: v1.FlowSchema) -> None:
    _validate_conditions(errors, new.status.conditions)


def _validate_flow_schema_spec(errors: FieldErrors, obj: v1.FlowSchema) -> None:
    spec = obj.spec
    precedence, path = spec.matchingPrecedence, "spec.matchingPrecedence"
    if precedence <= 0:
        errors.invalid(path, precedence, "must be a positive value")
    if precedence > _MAX_PRECEDENCE:
        errors.invalid(path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")
    if precedence == 1 and obj.metadata.name != _EXEMPT:
        errors.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.distinguisherMethod
    if method is not None and method.type not in _DISTINGUISHER_METHODS:
        # Upstream shows the whole struct, by its Go field names.
        errors.not_supported("spec.distinguisherMethod.type", {"Type": method.type}, _DISTINGUISHER_METHODS)
    level, path = spec.priorityLevelConfiguration.name, "spec.priorityLevelConfiguration.name"
    if level:
        errors.invalid_each(path, level, names.dns1123_subdomain(level))
    else:
        errors.required(path, "must reference a priority level")
    for i, rule in enumerate(spec.rules):
        _validate_rules(errors, f"spec.rules[{i}]", rule)
    _validate_conditions(errors, obj.status.conditions)


def _validate_rules(errors: FieldErrors, path: str, rule: v1.PolicyRulesWithSubjects) -> None:
    if not rule.subjects:
        errors.required(f"{path}.subjects", "subjects must contain at least one value")
    for i, subject in enumerate(rule.subjects):
        _validate_subject(errors, f"{path}.subjects[{i}]", subject)
    if not rule.resourceRules and not rule.nonResourceRules:
        errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for i, resources in enumerate(rule.resourceRules):
        _validate_resource_rule(errors, f"{path}.resourceRules[{i}]", resources)
    for i, others in enumerate(rule.nonResourceRules):
        _validate_non_resource_rule(errors, f"{path}.nonResourceRules[{i}]", others)


def _validate_subject(errors: FieldErrors, path: str, subject: v1.Subject) -> None:
    field = _SUBJECT_FIELDS.get(subject.kind)
    if field is None:
        errors.not_supported(f"{path}.kind", subject.kind, sorted(_SUBJECT_FIELDS))
        return
    subject_ref = getattr(subject, field)
    if subject_ref is None:
        errors.required(f"{path}.{field}", f"{field} is required when subject kind is '{subject.kind}'")
    else:
        _validate_named_subject(errors, f"{path}.{field}", subject_ref)
    for kind, other in (("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")):
        if other != field and getattr(subject, other) is not None:
            errors.forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{kind}'")


def _validate_named_subject(
    errors: FieldErrors, path: str, subject: v1.UserSubject | v1.GroupSubject | v1.ServiceAccountSubject
) -> None:
    if not subject.name:
        errors.required(f"{path}.name")
    if not isinstance(subject, v1.ServiceAccountSubject):
        return
    if subject.name and subject.name != _ALL:
        errors.invalid_each(f"{path}.name", subject.name, names.dns1123_subdomain(subject.name))
    if subject.namespace:
        errors.invalid_each(f"{path}.namespace", subject.namespace, names.dns1123_label(subject.namespace))
    else:
        errors.required(f"{path}.namespace", "must specify namespace for service account")


def _validate_resource_rule(errors: FieldErrors, path: str, rule: v1.ResourcePolicyRule) -> None:
    _validate_verbs(errors, path, rule.verbs)
    for field, singular, plural in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = getattr(rule, field)
        if not values:
            errors.required(f"{path}.{field}", f"resource rules must supply at least one {singular}")
        else:
            _validate_wildcard_alone(errors, f"{path}.{field}", values, plural)
    namespaces = rule.namespaces or ()
    if not namespaces and not rule.clusterScope:
        errors.required(
            f"{path}.namespaces",
            "resource rules that are not cluster scoped must supply at least one namespace",
        )
    elif _ALL in namespaces:
        _validate_wildcard_alone(errors, f"{path}.namespaces", namespaces, "namespaces")
    else:
        for i, name in enumerate(namespaces):
            for detail in names.dns1123_label(name):
                message = f"each member of this list must be '*' or a DNS-1123 label; {detail}"
                errors.invalid(f"{path}.namespaces[{i}]", name, message)


def _validate_non_resource_rule(errors: FieldErrors, path: str, rule: v1.NonResourcePolicyRule) -> None:
    _validate_verbs(errors, path, rule.verbs)
    path = f"{path}.nonResourceURLs"
    if not rule.nonResourceURLs:
        errors.required(path, "nonResourceURLs must contain at least one value")
    elif _ALL in rule.nonResourceURLs:
        _validate_wildcard_alone(errors, path, rule.nonResourceURLs, "non-resource URLs")
    else:
        for i, url in enumerate(rule.nonResourceURLs):
            if detail := _url_path_error(url):
                errors.invalid(f"{path}[{i}]", url, detail)


def _url_path_error(url: str) -> str:
    """The message for a non-resource URL that is invalid; empty where it is valid."""
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count(_ALL)
    return "wildcard can only do suffix matching" if stars > 1 or (stars and url[-2:] != "/*") else ""


def _validate_verbs(errors: FieldErrors, path: str, verbs: Sequence[str]) -> None:
    path = f"{path}.verbs"
    if not verbs:
        errors.required(path, "verbs must contain at least one value")
    elif _ALL in verbs:
        _validate_wildcard_alone(errors, path, verbs, "verbs")
    elif any(verb not in _VERBS for verb in verbs):
        errors.not_supported(path, verbs, _VERBS)


def _validate_wildcard_alone(errors: FieldErrors, path: str, values: Sequence[str], plural: str) -> None:
    """Validates that ``*`` is the only value where it is present."""
    if _ALL in values and len(values) > 1:
        errors.invalid(path, values, f"if '*' is present, must not specify other {plural}")


# -- PriorityLevelConfigurations --------------------------------------------------------------


def validate_priority_level(errors: FieldErrors, obj: v1.PriorityLevelConfiguration) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_priority_level_spec(errors, obj)


def validate_priority_level_update(
    errors: FieldErrors, new: v1.PriorityLevelConfiguration, old: v1.PriorityLevelConfiguration
) -> None:
    meta.validate_object_meta(errors, new.metadata, namespaced=False)
    _validate_priority_level_spec(errors, new)


def validate_priority_level_status(
    errors: FieldErrors, new: v1.PriorityLevelConfiguration, old: v1.PriorityLevelConfiguration
) -> None:
    _validate_conditions(errors, new.status.conditions)


def _validate_priority_level_spec(errors: FieldErrors, obj: v1.PriorityLevelConfiguration) -> None:
    spec = obj.spec
    if (obj.metadata.name == _EXEMPT) != (spec.type == "Exempt"):
        errors.invalid("spec.type", spec.type, "must be 'Exempt' if and only if `name` is 'exempt'")
    match spec.type:
        case "Exempt":
            if spec.limited is not None:
                errors.forbidden("spec.limited", "must be nil if the type is not Limited")
            if spec.exempt is not None:
                _validate_concurrency_shares(errors, "spec.exempt", spec.exempt)
        case "Limited":
            if spec.exempt is not None:
                errors.forbidden("spec.exempt", "must be nil if the type is Limited")
            if spec.limited is None:
                errors.required("spec.limited", "must not be empty when type is Limited")
            else:
                _validate_limited(errors, "spec.limited", spec.limited)
        case _:
            errors.enum("spec.type", spec.type, _LEVEL_TYPES)
    _validate_conditions(errors, obj.status.conditions)


def _validate_concurrency_shares(
    errors: FieldErrors,
    path: str,
    config: v1.ExemptPriorityLevelConfiguration | v1.LimitedPriorityLevelConfiguration,
) -> None:
    shares = config.nominalConcurrencyShares
    if shares is not None and shares < 0:
        errors.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if isinstance(config, v1.LimitedPriorityLevelConfiguration):
        _validate_limit_response(errors, f"{path}.limitResponse", config.limitResponse)
    percent = config.lendablePercent
    if percent is not None and not 0 <= percent <= 100:
        errors.invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive")


def _validate_limited(errors: FieldErrors, path: str, limited: v1.LimitedPriorityLevelConfiguration) -> None:
    _validate_concurrency_shares(errors, path, limited)
    limit = limited.borrowingLimitPercent
    if limit is not None and limit < 0:
        errors.invalid(f"{path}.borrowingLimitPercent", limit, "if specified, must be a non-negative integer")


def _validate_limit_response(errors: FieldErrors, path: str, response: v1.LimitResponse) -> None:
    queuing = response.queuing
    match response.type:
        case "Reject":
            if queuing is not None:
                errors.forbidden(
                    f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited"
                )
        case "Queue":
            if queuing is None:
                errors.required(
                    f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited"
                )
            else:
                _validate_queuing(errors, f"{path}.queuing", queuing)
        case _:
            errors.enum(f"{path}.type", response.type, _RESPONSE_TYPES)


def _validate_queuing(errors: FieldErrors, path: str, queuing: v1.QueuingConfiguration) -> None:
    queues, hand_size = queuing.queues, queuing.handSize
    if queuing.queueLengthLimit <= 0:
        errors.invalid(f"{path}.queueLengthLimit", queuing.queueLengthLimit, "must be positive")
    if queues <= 0:
        errors.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MAX_QUEUES:
        errors.invalid(f"{path}.queues", queues, f"must not be greater than {_MAX_QUEUES}")
    if hand_size <= 0:
        errors.invalid(f"{path}.handSize", hand_size, "must be positive")
    elif hand_size > queues:
        errors.invalid(f"{path}.handSize", hand_size, f"should not be greater than queues ({queues})")
    elif hand_size * log2(queues) > _MAX_HASH_BITS:
        errors.invalid(
            f"{path}.handSize",
            hand_size,
            f"required entropy bits of deckSize {queues} and handSize {hand_size} "
            f"should not be greater than {_MAX_HASH_BITS}",
        )


def _validate_conditions(
    errors: FieldErrors, conditions: Sequence[v1.FlowSchemaCondition | v1.PriorityLevelConfigurationCondition]
) -> None:
    seen: list[str] = []
    for i, condition in enumerate(conditions):
        path = f"status.conditions[{i}].type"
        if condition.type in seen:
            errors.duplicate(path, condition.type)
        seen.append(condition.type)
        if not condition.type:
            errors.required(path)


RULES: Mapping[GroupKind, AnyRules] = {
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): Rules[v1.FlowSchema](
        validate_flow_schema, validate_flow_schema_update, status=validate_flow_schema_status
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): Rules[v1.PriorityLevelConfiguration](
        validate_priority_level, validate_priority_level_update, status=validate_priority_level_status
    ),
}
