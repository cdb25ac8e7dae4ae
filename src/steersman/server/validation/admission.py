"""Validation of admission policies, with their expressions, and of their bindings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from steersman.api.generated import admissionregistration_v1 as admission
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_label_selector
from steersman.server.validation.webhooks import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    validate_match_conditions,
    validate_rule,
)

if TYPE_CHECKING:
    from steersman.server.validation.policy_expressions import Expressions

Policy: TypeAlias = admission.ValidatingAdmissionPolicy | admission.MutatingAdmissionPolicy
Binding: TypeAlias = admission.ValidatingAdmissionPolicyBinding | admission.MutatingAdmissionPolicyBinding

_STATUS_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_VALIDATION_ACTIONS = ("Audit", "Deny", "Warn")
_PATCH_TYPES = ("ApplyConfiguration", "JSONPatch")
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_MAX_AUDIT_ANNOTATIONS = 20
_MAX_VALUE_EXPRESSION_BYTES = 5 * 1024
_AT_LEAST_ONE = "validations or auditAnnotations must contain at least one item"
_is_cel_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_CEL_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)


def validate_policy(errors: FieldErrors, obj: Policy) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False, kube=False)
    _validate_policy_spec(errors, obj)


def validate_policy_update(errors: FieldErrors, new: Policy, old: Policy) -> None:
    if new.metadata is not old.metadata:
        meta.validate_object_meta(errors, new.metadata, namespaced=False, kube=False)
    _validate_policy_spec(errors, new)


def validate_policy_status(
    errors: FieldErrors, new: admission.ValidatingAdmissionPolicy, old: admission.ValidatingAdmissionPolicy
) -> None:
    checking = new.status.typeChecking
    for i, warning in enumerate(checking.expressionWarnings if checking is not None else ()):
        path = f"status.typeChecking.expressionWarnings[{i}]"
        if not warning.warning:
            errors.required(f"{path}.warning")
        if not warning.fieldRef.strip():
            errors.required(f"{path}.fieldRef")
    meta.validate_conditions(errors, "status.conditions", new.status.conditions)


def _validate_policy_spec(errors: FieldErrors, obj: Policy) -> None:
    spec = obj.spec
    errors.enum("spec.failurePolicy", spec.failurePolicy or "", FAILURE_POLICIES)
    if spec.paramKind is not None:
        _validate_param_kind(errors, "spec.paramKind", spec.paramKind)
    constraints = spec.matchConstraints
    if constraints is None:
        errors.required("spec.matchConstraints")
    else:
        _validate_match_resources(errors, "spec.matchConstraints", constraints)
        if not constraints.resourceRules:
            errors.required("spec.matchConstraints.resourceRules")
    mutating = isinstance(obj, admission.MutatingAdmissionPolicy)
    if mutating and constraints is not None:
        for rule in constraints.resourceRules:
            for operation in rule.operations:
                if operation not in _MUTATING_OPERATIONS:
                    at = "spec.matchConstraints.resourceRules.operations"
                    errors.not_supported(at, operation, _MUTATING_OPERATIONS)
    # Few servers have policies, and all of CEL comes with them.
    from steersman.server.validation.policy_expressions import Expressions

    expressions = Expressions(params=spec.paramKind is not None, variables=mutating or bool(spec.variables))
    validate_match_conditions(
        errors, "spec.matchConditions", spec.matchConditions, params=spec.paramKind is not None
    )
    for i, variable in enumerate(spec.variables):
        _validate_variable(errors, f"spec.variables[{i}]", variable, expressions)
    if isinstance(obj, admission.MutatingAdmissionPolicy):
        _validate_mutations(errors, obj.spec, expressions)
    else:
        _validate_validations(errors, obj.metadata, obj.spec, expressions)


def _validate_param_kind(errors: FieldErrors, path: str, kind: admission.ParamKind) -> None:
    version = kind.apiVersion
    at = f"{path}.apiVersion"
    if not version:
        errors.required(at)
    elif version.count("/") > 1:
        errors.invalid(at, version, f"unexpected GroupVersion string: {version}")
    else:
        group, _, number = version.rpartition("/")
        if group and (messages := names.dns1123_subdomain(group)):
            errors.invalid(at, group, ",".join(messages))
        if not number:
            errors.invalid(at, version, "version must be specified")
        elif messages := names.dns1035_label(number):
            errors.invalid(at, number, ",".join(messages))
    if not kind.kind:
        errors.required(f"{path}.kind")
    elif messages := names.dns1035_label(kind.kind.lower()):
        mixed = f"may have mixed case, but should otherwise match: {','.join(messages)}"
        errors.invalid(f"{path}.kind", kind.kind, mixed)


def _validate_match_resources(errors: FieldErrors, path: str, match: admission.MatchResources) -> None:
    errors.enum(f"{path}.matchPolicy", match.matchPolicy or "", MATCH_POLICIES)
    for name, selector in (
        ("namespaceSelector", match.namespaceSelector),
        ("objectSelector", match.objectSelector),
    ):
        if selector is None:
            errors.required(f"{path}.{name}")
        validate_label_selector(errors, f"{path}.{name}", selector)
    for name, value in (
        ("resourceRules", match.resourceRules),
        ("excludeResourceRules", match.excludeResourceRules),
    ):
        for i, rule in enumerate(value):
            at = f"{path}.{name}[{i}]"
            for j, resource in enumerate(rule.resourceNames):
                errors.invalid_each(f"{at}.resourceNames[{j}]", resource, names.path_segment(resource))
                if resource in rule.resourceNames[:j]:
                    errors.duplicate(f"{at}.resourceNames[{j}]", resource)
            validate_rule(errors, at, rule)


def _validate_variable(
    errors: FieldErrors, path: str, variable: admission.Variable, expressions: Expressions
) -> None:
    if not variable.name.strip():
        errors.required(f"{path}.name", "name is not specified")
    elif not _is_cel_identifier(variable.name) or variable.name in _CEL_RESERVED:
        errors.invalid(f"{path}.name", variable.name, "must be a valid CEL identifier")
    if not variable.expression.strip():
        errors.required(f"{path}.expression", "expression is not specified")
    else:
        expressions.variable(errors, f"{path}.expression", variable.name, variable.expression)


def _validate_validations(
    errors: FieldErrors,
    metadata: ObjectMeta,
    spec: admission.ValidatingAdmissionPolicySpec,
    expressions: Expressions,
) -> None:
    if not spec.validations and not spec.auditAnnotations:
        errors.required("spec.validations", _AT_LEAST_ONE)
        errors.required("spec.auditAnnotations", _AT_LEAST_ONE)
        return
    for i, validation in enumerate(spec.validations):
        path = f"spec.validations[{i}]"
        if not validation.expression.strip():
            errors.required(f"{path}.expression", "expression is not specified")
        else:
            expressions.condition(errors, f"{path}.expression", validation.expression)
        message = validation.messageExpression
        if message.strip():
            expressions.message(errors, f"{path}.messageExpression", message)
        for name, value in (("messageExpression", message), ("message", validation.message)):
            if value and not value.strip():
                errors.invalid(f"{path}.{name}", value, "must be non-empty if specified")
        if re.search(r"[\n\r]", validation.message.strip()):
            errors.invalid(f"{path}.message", validation.message, "must not contain line breaks")
        if validation.reason is not None and validation.reason not in _STATUS_REASONS:
            errors.not_supported(f"{path}.reason", validation.reason, _STATUS_REASONS)
    annotations = spec.auditAnnotations
    if len(annotations) > _MAX_AUDIT_ANNOTATIONS:
        many = f"must not have more than {_MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        errors.invalid("spec.auditAnnotations", annotations, many)
    keys: list[str] = []
    for i, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{i}]"
        key = f"{metadata.name}/{annotation.key}"
        errors.invalid_each(f"{path}.key", key, names.qualified_name(key))
        expression = annotation.valueExpression.strip()
        if not expression:
            errors.required(f"{path}.valueExpression", "valueExpression is not specified")
        elif len(expression) > _MAX_VALUE_EXPRESSION_BYTES:
            long = f"must not exceed {_MAX_VALUE_EXPRESSION_BYTES} bytes in length"
            errors.required(f"{path}.valueExpression", long)
        else:
            expressions.annotation(errors, f"{path}.valueExpression", annotation.valueExpression)
        if annotation.key in keys:
            errors.duplicate(f"{path}.key", annotation.key)
        keys.append(annotation.key)


def _validate_mutations(
    errors: FieldErrors, spec: admission.MutatingAdmissionPolicySpec, expressions: Expressions
) -> None:
    if not spec.mutations:
        errors.required("spec.mutations", "mutations must contain at least one item")
    for i, mutation in enumerate(spec.mutations):
        path = f"spec.mutations[{i}]"
        patch = mutation.patchType
        errors.enum(f"{path}.patchType", patch, _PATCH_TYPES)
        forms = (("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch"))
        # The form of the patch type comes first, then the one that should not be there.
        for type_, name in sorted(forms, key=lambda form: form[0] != patch):
            patch_value = getattr(mutation, name)
            if patch == type_ and patch_value is None:
                needs = f"must be specified when patchType is {type_}"
                errors.required(f"{path}.{name}", needs)
            elif patch == type_:
                expressions.mutation(errors, f"{path}.{name}.expression", patch, patch_value.expression)
            elif patch in _PATCH_TYPES and patch != type_ and patch_value is not None:
                not_ = f"must not be specified when patchType is {patch}"
                errors.invalid(f"{path}.{name}", f"{{{name}}}", not_)
    errors.enum("spec.reinvocationPolicy", spec.reinvocationPolicy, REINVOCATION_POLICIES)


# -- bindings ---------------------------------------------------------------------------------


def validate_binding(errors: FieldErrors, obj: Binding) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False, kube=False)
    _validate_binding_spec(errors, obj)


def validate_binding_update(errors: FieldErrors, new: Binding, old: Binding) -> None:
    if new.metadata is not old.metadata:
        meta.validate_object_meta(errors, new.metadata, namespaced=False, kube=False)
    _validate_binding_spec(errors, new)


def _validate_binding_spec(errors: FieldErrors, obj: Binding) -> None:
    spec = obj.spec
    if not spec.policyName:
        errors.required("spec.policyName")
    else:
        errors.invalid_each("spec.policyName", spec.policyName, names.dns1123_subdomain(spec.policyName))
    if spec.paramRef is not None:
        _validate_param_ref(errors, "spec.paramRef", spec.paramRef)
    if spec.matchResources is not None:
        _validate_match_resources(errors, "spec.matchResources", spec.matchResources)
    if not isinstance(obj, admission.ValidatingAdmissionPolicyBinding):
        return
    actions, path = obj.spec.validationActions, "spec.validationActions"
    for i, action in enumerate(actions):
        if action not in _VALIDATION_ACTIONS:
            errors.not_supported(f"{path}[{i}]", action, _VALIDATION_ACTIONS)
        if action in actions[:i]:
            errors.duplicate(f"{path}[{i}]", action)
    if "Deny" in actions and "Warn" in actions:
        errors.invalid(
            path,
            actions,
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)",
        )
    if not actions:
        errors.required(path, "at least one validation action is required")


def _validate_param_ref(errors: FieldErrors, path: str, ref: admission.ParamRef) -> None:
    exclusive = "name and selector are mutually exclusive"
    if ref.name:
        errors.invalid_each(f"{path}.name", ref.name, names.path_segment(ref.name))
        if ref.selector is not None:
            errors.forbidden(f"{path}.name", exclusive)
    if ref.selector is not None:
        validate_label_selector(errors, f"{path}.selector", ref.selector)
        if ref.name:
            errors.forbidden(f"{path}.selector", exclusive)
    if not ref.name and ref.selector is None:
        errors.required(path, "one of name or selector must be specified")
    action = ref.parameterNotFoundAction
    errors.enum(f"{path}.parameterNotFoundAction", action or "", ("Deny", "Allow"))


RULES: Mapping[GroupKind, AnyRules] = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): Rules[admission.MutatingAdmissionPolicy](
        validate_policy, validate_policy_update
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): Rules[
        admission.MutatingAdmissionPolicyBinding
    ](validate_binding, validate_binding_update),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): Rules[admission.ValidatingAdmissionPolicy](
        validate_policy, validate_policy_update, status=validate_policy_status
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): Rules[
        admission.ValidatingAdmissionPolicyBinding
    ](validate_binding, validate_binding_update),
}
