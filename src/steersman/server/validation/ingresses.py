"""Validation of Ingresses and IngressClasses."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import networking_v1
from steersman.api.ip_addresses import parse_ip
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, Verbatim
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.services import validate_ingress_hostname

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_INVALID_PATH_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_INVALID_PATH_SUFFIXES = ("/..", "/.")
_PARAMETER_SCOPES = ("Cluster", "Namespace")
_MAX_CONTROLLER_BYTES = 250


def validate_ingress(errors: FieldErrors, ingress: networking_v1.Ingress) -> None:
    meta.validate_object_meta(errors, ingress.metadata)
    _validate_ingress_spec(errors, "spec", ingress.spec)
    annotation, name = ingress.metadata.annotations.get(_CLASS_ANNOTATION), ingress.spec.ingressClassName
    if annotation is not None and name is not None and annotation != name:
        same = "must match `ingressClassName` when both are specified"
        errors.invalid(f"annotations.{_CLASS_ANNOTATION}", annotation, same)


def validate_ingress_update(
    errors: FieldErrors, new: networking_v1.Ingress, old: networking_v1.Ingress
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    if new.spec is not old.spec:
        _validate_ingress_spec(errors, "spec", new.spec)


def _validate_ingress_spec(errors: FieldErrors, path: str, spec: networking_v1.IngressSpec) -> None:
    if not spec.rules and spec.defaultBackend is None:
        errors.invalid(path, Verbatim("null"), "either `defaultBackend` or `rules` must be specified")
    if spec.defaultBackend is not None:
        _validate_ingress_backend(errors, f"{path}.defaultBackend", spec.defaultBackend)
    for i, rule in enumerate(spec.rules):
        _validate_ingress_rule(errors, f"{path}.rules[{i}]", rule)
    for i, tls in enumerate(spec.tls):
        at = f"{path}.tls[{i}]"
        for j, host in enumerate(tls.hosts):
            errors.invalid_each(f"{at}.hosts[{j}]", host, _host_errors(host))
        if tls.secretName:
            errors.invalid_each(f"{at}.secretName", tls.secretName, names.dns1123_subdomain(tls.secretName))
    if spec.ingressClassName is not None:
        name = spec.ingressClassName
        errors.invalid_each(f"{path}.ingressClassName", name, names.dns1123_subdomain(name))


def _host_errors(host: str) -> tuple[str, ...]:
    return names.wildcard_subdomain(host) if "*" in host else names.dns1123_subdomain(host)


def _validate_ingress_rule(errors: FieldErrors, path: str, rule: networking_v1.IngressRule) -> None:
    if rule.host:
        if parse_ip(rule.host) is not None:
            errors.invalid(f"{path}.host", rule.host, "must be a DNS name, not an IP address")
        errors.invalid_each(f"{path}.host", rule.host, _host_errors(rule.host))
    if rule.http is None:
        return
    paths = rule.http.paths or ()
    if not paths:
        errors.required(f"{path}.http.paths")
    for i, http_path in enumerate(paths):
        _validate_ingress_path(errors, f"{path}.http.paths[{i}]", http_path)


def _validate_ingress_path(errors: FieldErrors, path: str, http_path: networking_v1.HTTPIngressPath) -> None:
    value, type_ = http_path.path, http_path.pathType
    if type_ is None:
        errors.required(f"{path}.pathType", "pathType must be specified")
        return
    at = f"{path}.path"
    if type_ not in _PATH_TYPES:
        errors.not_supported(f"{path}.pathType", type_, _PATH_TYPES)
    elif (value or type_ != "ImplementationSpecific") and not value.startswith("/"):
        errors.invalid(at, value, "must be an absolute path")
    if type_ in ("Exact", "Prefix"):
        for sequence in _INVALID_PATH_SEQUENCES:
            if sequence in value:
                errors.invalid(at, value, f"must not contain '{sequence}'")
        for suffix in _INVALID_PATH_SUFFIXES:
            if value.endswith(suffix):
                errors.invalid(at, value, f"cannot end with '{suffix}'")
    _validate_ingress_backend(errors, f"{path}.backend", http_path.backend)


def _validate_ingress_backend(errors: FieldErrors, path: str, backend: networking_v1.IngressBackend) -> None:
    service = backend.service
    if backend.resource is not None and service is not None:
        errors.invalid(path, "", "cannot set both resource and service backends")
    elif backend.resource is not None:
        _validate_typed_reference(errors, f"{path}.resource", backend.resource)
    elif service is not None:
        _validate_service_backend(errors, path, service)
    else:
        errors.invalid(path, "", "resource or service backend is required")


def _validate_service_backend(
    errors: FieldErrors, path: str, service: networking_v1.IngressServiceBackend
) -> None:
    if not service.name:
        errors.required(f"{path}.service.name")
    else:
        errors.invalid_each(f"{path}.service.name", service.name, names.dns1123_label(service.name))
    port = service.port
    if port is None or not (port.name or port.number):
        errors.required(path, "port name or number is required")
    elif port.name and port.number:
        errors.invalid(path, "", "cannot set both port name & port number")
    elif port.name:
        errors.invalid_each(f"{path}.service.port.name", port.name, names.port_name(port.name))
    else:
        errors.invalid_each(f"{path}.service.port.number", port.number, names.port_number(port.number))


def _validate_typed_reference(
    errors: FieldErrors,
    path: str,
    ref: v1.TypedLocalObjectReference | networking_v1.IngressClassParametersReference,
) -> None:
    if ref.apiGroup is not None:
        errors.invalid_each(f"{path}.apiGroup", ref.apiGroup, names.dns1123_subdomain(ref.apiGroup))
    for name, value in (("kind", ref.kind), ("name", ref.name)):
        if not value:
            errors.required(f"{path}.{name}")
        else:
            errors.invalid_each(f"{path}.{name}", value, names.path_segment(value))


def validate_ingress_status(
    errors: FieldErrors, new: networking_v1.Ingress, old: networking_v1.Ingress
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    existing = [ingress.ip for ingress in old.status.loadBalancer.ingress if ingress.ip]
    for i, ingress in enumerate(new.status.loadBalancer.ingress):
        at = f"status.loadBalancer.ingress[{i}]"
        if ingress.ip:
            addresses.validate_ip(errors, f"{at}.ip", ingress.ip, existing)
        validate_ingress_hostname(errors, f"{at}.hostname", ingress.hostname)


# -- classes ----------------------------------------------------------------------------------


def validate_ingress_class(errors: FieldErrors, obj: networking_v1.IngressClass) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_ingress_class_spec(errors, obj.spec)


def validate_ingress_class_update(
    errors: FieldErrors, new: networking_v1.IngressClass, old: networking_v1.IngressClass
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    errors.immutable("spec.controller", new.spec.controller, old.spec.controller)
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    _validate_ingress_class_spec(errors, new.spec)


def _validate_ingress_class_spec(errors: FieldErrors, spec: networking_v1.IngressClassSpec) -> None:
    if len(spec.controller) > _MAX_CONTROLLER_BYTES:
        errors.too_long("spec.controller", _MAX_CONTROLLER_BYTES)
    names.validate_domain_prefixed_path(errors, "spec.controller", spec.controller)
    params = spec.parameters
    if params is None:
        return
    path = "spec.parameters"
    _validate_typed_reference(errors, path, params)
    if params.scope is None:
        errors.required(f"{path}.scope")
    elif params.scope not in _PARAMETER_SCOPES:
        errors.not_supported(f"{path}.scope", params.scope, _PARAMETER_SCOPES)
    elif params.scope == "Cluster":
        if params.namespace is not None:
            errors.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif params.namespace is None:
        errors.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    else:
        errors.invalid_each(f"{path}.namespace", params.namespace, names.dns1123_label(params.namespace))


RULES: Mapping[GroupKind, AnyRules] = {
    ("networking.k8s.io", "Ingress"): Rules[networking_v1.Ingress](
        validate_ingress, validate_ingress_update, status=validate_ingress_status
    ),
    ("networking.k8s.io", "IngressClass"): Rules[networking_v1.IngressClass](
        validate_ingress_class, validate_ingress_class_update
    ),
}
