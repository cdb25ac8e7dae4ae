"""Validation of webhook configurations, and of the rules and match conditions they share with policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

from steersman.api.generated import admissionregistration_v1 as admission
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_label_selector

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
_SCOPES = ("*", "Cluster", "Namespaced")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_MAX_MATCH_CONDITIONS = 64
_URL_FORMAT = "; desired format: https://host[/path]"

Configuration: TypeAlias = admission.MutatingWebhookConfiguration | admission.ValidatingWebhookConfiguration
Webhook: TypeAlias = admission.MutatingWebhook | admission.ValidatingWebhook
Rule: TypeAlias = admission.RuleWithOperations | admission.NamedRuleWithOperations


def validate_webhook_configuration(errors: FieldErrors, obj: Configuration) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False, kube=False)
    _validate_webhooks(errors, obj)


def validate_webhook_configuration_update(
    errors: FieldErrors, new: Configuration, old: Configuration
) -> None:
    if new.metadata is not old.metadata:
        meta.validate_object_meta(errors, new.metadata, namespaced=False, kube=False)
    if new.webhooks is not old.webhooks:
        _validate_webhooks(errors, new)


def _validate_webhooks(errors: FieldErrors, obj: Configuration) -> None:
    seen: list[str] = []
    hooks: Sequence[Webhook] = obj.webhooks
    for i, hook in enumerate(hooks):
        path = f"webhooks[{i}]"
        _validate_webhook(errors, path, hook)
        _validate_review_versions(errors, f"{path}.admissionReviewVersions", hook.admissionReviewVersions)
        if hook.name and hook.name in seen:
            errors.duplicate(f"{path}.name", hook.name)
        seen.append(hook.name)


def _validate_webhook(errors: FieldErrors, path: str, hook: Webhook) -> None:
    names.validate_webhook_name(errors, f"{path}.name", hook.name)
    for i, rule in enumerate(hook.rules):
        validate_rule(errors, f"{path}.rules[{i}]", rule)
    _validate_optional_enum(errors, f"{path}.failurePolicy", hook.failurePolicy, FAILURE_POLICIES)
    _validate_optional_enum(errors, f"{path}.matchPolicy", hook.matchPolicy, MATCH_POLICIES)
    if hook.sideEffects is None:
        errors.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    _validate_optional_enum(errors, f"{path}.sideEffects", hook.sideEffects, _SIDE_EFFECTS)
    seconds = hook.timeoutSeconds
    if seconds is not None and not 1 <= seconds <= 30:
        message = "the timeout value must be between 1 and 30 seconds"
        errors.invalid(f"{path}.timeoutSeconds", seconds, message)
    validate_label_selector(errors, f"{path}.namespaceSelector", hook.namespaceSelector)
    validate_label_selector(errors, f"{path}.objectSelector", hook.objectSelector)
    if isinstance(hook, admission.MutatingWebhook):
        _validate_optional_enum(
            errors, f"{path}.reinvocationPolicy", hook.reinvocationPolicy, REINVOCATION_POLICIES
        )
    validate_client_config(errors, f"{path}.clientConfig", hook.clientConfig)
    validate_match_conditions(errors, f"{path}.matchConditions", hook.matchConditions)


def _validate_optional_enum(
    errors: FieldErrors, path: str, value: str | None, choices: tuple[str, ...]
) -> None:
    if value is not None and value not in choices:
        errors.not_supported(path, value, choices)


def _validate_review_versions(errors: FieldErrors, path: str, versions: tuple[str, ...]) -> None:
    if not versions:
        errors.required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    for i, version in enumerate(versions):
        if version in versions[:i]:
            errors.invalid(f"{path}[{i}]", version, "duplicate version")
            continue
        errors.invalid_each(f"{path}[{i}]", version, names.dns1035_label(version))
    if not any(version in _REVIEW_VERSIONS for version in versions):
        errors.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


# -- client configuration ---------------------------------------------------------------------


def validate_client_config(errors: FieldErrors, path: str, config: admission.WebhookClientConfig) -> None:
    """Validates where a webhook is: a URL or a service, not both."""
    if (config.url is None) == (config.service is None):
        errors.required(path, "exactly one of url or service is required")
    elif config.url is not None:
        _validate_url(errors, f"{path}.url", config.url)
    elif config.service is not None:
        _validate_service_reference(errors, f"{path}.service", config.service)


def _validate_url(errors: FieldErrors, path: str, url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        errors.required(path, f"url must be a valid URL: {error}{_URL_FORMAT}")
        return
    if parts.scheme != "https":
        errors.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORMAT}")
    host = parts.netloc.rpartition("@")[2]
    if not host:
        errors.invalid(path, "", f"host must be specified{_URL_FORMAT}")
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        errors.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        errors.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        errors.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _validate_service_reference(errors: FieldErrors, path: str, service: admission.ServiceReference) -> None:
    # Upstream reports a missing namespace as a missing name, and the other way round.
    if not service.namespace:
        errors.required(f"{path}.name")
    if not service.name:
        errors.required(f"{path}.namespace")
    port = 443 if service.port is None else service.port
    if messages := names.port_number(port):
        errors.invalid(f"{path}.port", port, f"port is not valid: {', '.join(messages)}")
    url_path = service.path
    if url_path in (None, "", "/"):
        return
    at = f"{path}.path"
    if url_path == "//":
        errors.invalid(at, url_path, "segment[0] may not be empty")
        return
    if not url_path.startswith("/"):
        errors.invalid(at, url_path, "must start with a '/'")
    for i, step in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not step:
            errors.invalid(at, url_path, f"segment[{i}] may not be empty")
            continue
        for detail in names.dns1123_subdomain(step):
            errors.invalid(at, url_path, f"segment[{i}]: {detail}")


# -- rules and match conditions ---------------------------------------------------------------


def validate_rule(errors: FieldErrors, path: str, rule: Rule) -> None:
    """Validates a rule: its operations, groups, versions and resources."""
    operations = rule.operations
    if not operations:
        errors.required(f"{path}.operations")
    _validate_wildcard_alone(errors, f"{path}.operations", operations, "operations")
    for i, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.not_supported(f"{path}.operations[{i}]", operation, _OPERATIONS)
    if not rule.apiGroups:
        errors.required(f"{path}.apiGroups")
    _validate_wildcard_alone(errors, f"{path}.apiGroups", rule.apiGroups, "API groups")
    if not rule.apiVersions:
        errors.required(f"{path}.apiVersions")
    _validate_wildcard_alone(errors, f"{path}.apiVersions", rule.apiVersions, "API versions")
    for i, version in enumerate(rule.apiVersions):
        if not version:
            errors.required(f"{path}.apiVersions[{i}]")
    _validate_rule_resources(errors, f"{path}.resources", rule.resources)
    if rule.scope is not None and rule.scope not in _SCOPES:
        errors.not_supported(f"{path}.scope", rule.scope, _SCOPES)


def _validate_wildcard_alone(errors: FieldErrors, path: str, values: tuple[str, ...], plural: str) -> None:
    if len(values) > 1 and "*" in values:
        errors.invalid(path, values, f"if '*' is present, must not specify other {plural}")


def _validate_rule_resources(errors: FieldErrors, path: str, resources: tuple[str, ...]) -> None:
    if not resources:
        errors.required(path)
    every_sub: list[str] = []
    every_resource: list[str] = []
    plain = False
    for i, name in enumerate(resources):
        at = f"{path}[{i}]"
        if not name:
            errors.required(at)
            continue
        resource, slash, sub = name.partition("/")
        if not slash:
            plain = name != "*"
            continue
        if resource in every_sub:
            errors.invalid(at, name, f"if '{resource}/*' is present, must not specify {name}")
        if sub in every_resource:
            errors.invalid(at, name, f"if '*/{sub}' is present, must not specify {name}")
        if sub == "*":
            every_sub.append(resource)
        if resource == "*":
            every_resource.append(sub)
    if len(resources) > 1 and "*/*" in resources:
        errors.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        others = "if '*' is present, must not specify other resources without subresources"
        errors.invalid(path, resources, others)


def validate_match_conditions(
    errors: FieldErrors,
    path: str,
    match_conditions: tuple[admission.MatchCondition, ...],
    *,
    params: bool = False,
) -> None:
    """Validates match conditions. Those of a policy with parameters may refer to these."""
    if len(match_conditions) > _MAX_MATCH_CONDITIONS:
        errors.too_many(path, len(match_conditions), _MAX_MATCH_CONDITIONS)
    seen: list[str] = []
    for i, condition in enumerate(match_conditions):
        source = condition.expression.strip()
        if not source:
            errors.required(f"{path}[{i}].expression")
        else:
            # Few have conditions, and all of CEL comes with them.
            from steersman.api.cel.policy_expressions import CONDITION, expression_error, policy_environment

            environment = policy_environment(params=params, authorizer=True)
            wrong = expression_error(source, environment, CONDITION)
            if wrong:
                errors.invalid(f"{path}[{i}].expression", source, wrong)
        if not condition.name:
            errors.required(f"{path}[{i}].name")
        else:
            errors.invalid_each(f"{path}[{i}].name", condition.name, names.qualified_name(condition.name))
            if condition.name in seen:
                errors.duplicate(f"{path}[{i}].name", condition.name)
            seen.append(condition.name)


RULES: Mapping[GroupKind, AnyRules] = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): Rules[
        admission.MutatingWebhookConfiguration
    ](validate_webhook_configuration, validate_webhook_configuration_update),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): Rules[
        admission.ValidatingWebhookConfiguration
    ](validate_webhook_configuration, validate_webhook_configuration_update),
}
