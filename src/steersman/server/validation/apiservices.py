"""Validation of APIServices."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated.apiregistration_v1 import APIService
from steersman.server.validation import metadata, names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.rules import AnyRules, GroupKind, Rules


def validate_api_service(errors: FieldErrors, obj: APIService) -> None:
    """Validates an APIService: one without a Service is served by this server."""
    spec = obj.spec
    required = f"{spec.version}.{spec.group}"

    def name_rule(name: str) -> tuple[str, ...]:
        wrong = names.path_segment(name)
        return wrong or (
            () if name == required else (f'must be `spec.version+"."+spec.group`: "{required}"',)
        )

    metadata.validate_object_meta(errors, obj.metadata, name_rule, namespaced=False)
    if not spec.group and spec.version != "v1":
        errors.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    if spec.group:
        errors.invalid_each("spec.group", spec.group, names.dns1123_subdomain(spec.group))
    errors.invalid_each("spec.version", spec.version or "", names.dns1035_label(spec.version or ""))
    for name, value, most in (
        ("groupPriorityMinimum", spec.groupPriorityMinimum, 20000),
        ("versionPriority", spec.versionPriority, 1000),
    ):
        if not 0 < value <= most:
            errors.invalid(f"spec.{name}", value, f"must be positive and less than {most}")
    bundle, insecure = spec.caBundle or "", bool(spec.insecureSkipTLSVerify)
    service = spec.service
    if service is None:
        if bundle:
            size = f"{len(bundle) * 3 // 4 - bundle.count('=')} bytes"
            errors.invalid("spec.caBundle", size, "local APIServices may not have a caBundle")
        if insecure:
            why = "local APIServices may not have insecureSkipTLSVerify"
            errors.invalid("spec.insecureSkipTLSVerify", True, why)
        return
    if not service.namespace:
        errors.required("spec.service.namespace")
    if not service.name:
        errors.required("spec.service.name")
    port = 443 if service.port is None else service.port
    if not 1 <= port <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        errors.invalid("spec.service.port", port, why)
    if insecure and bundle:
        errors.invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


def validate_api_service_update(errors: FieldErrors, new: APIService, old: APIService) -> None:
    """Validates an update of an APIService."""
    validate_api_service(errors, new)


def validate_api_service_status(errors: FieldErrors, new: APIService, old: APIService) -> None:
    """Validates the status of an APIService."""
    for index, condition in enumerate(new.status.conditions):
        errors.enum(f"status.conditions[{index}].status", condition.status, ("False", "True", "Unknown"))


RULES: Mapping[GroupKind, AnyRules] = {
    ("apiregistration.k8s.io", "APIService"): Rules[APIService](
        validate_api_service, validate_api_service_update, status=validate_api_service_status
    )
}
