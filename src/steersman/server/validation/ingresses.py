"""Ways in: Ingresses and their classes."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import networking_v1
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, Verbatim
from steersman.server.validation.services import hostname

_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES = ("/..", "/.")
_SCOPES = ("Cluster", "Namespace")
_CONTROLLER_LENGTH = 250


def create(errors: FieldErrors, ingress: networking_v1.Ingress) -> None:
    meta.check(errors, ingress.metadata)
    _spec(errors, "spec", ingress.spec)
    said, name = ingress.metadata.annotations.get(_CLASS), ingress.spec.ingressClassName
    if said is not None and name is not None and said != name:
        same = "must match `ingressClassName` when both are specified"
        errors.invalid(f"annotations.{_CLASS}", said, same)


def update(errors: FieldErrors, new: networking_v1.Ingress, old: networking_v1.Ingress) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    meta.again(errors, new.metadata, old.metadata, names.subdomain)
    if new.spec is not old.spec:
        _spec(errors, "spec", new.spec)


def _spec(errors: FieldErrors, path: str, spec: networking_v1.IngressSpec) -> None:
    if not spec.rules and spec.defaultBackend is None:
        errors.invalid(path, Verbatim("null"), "either `defaultBackend` or `rules` must be specified")
    if spec.defaultBackend is not None:
        _backend(errors, f"{path}.defaultBackend", spec.defaultBackend)
    for i, rule in enumerate(spec.rules):
        _rule(errors, f"{path}.rules[{i}]", rule)
    for i, tls in enumerate(spec.tls):
        at = f"{path}.tls[{i}]"
        for j, host in enumerate(tls.hosts):
            errors.invalid_each(f"{at}.hosts[{j}]", host, _host(host))
        if tls.secretName:
            errors.invalid_each(f"{at}.secretName", tls.secretName, names.subdomain(tls.secretName))
    if spec.ingressClassName is not None:
        name = spec.ingressClassName
        errors.invalid_each(f"{path}.ingressClassName", name, names.subdomain(name))


def _host(host: str) -> tuple[str, ...]:
    return names.wildcard(host) if "*" in host else names.subdomain(host)


def _rule(errors: FieldErrors, path: str, rule: networking_v1.IngressRule) -> None:
    if rule.host:
        if addresses.parse(rule.host) is not None:
            errors.invalid(f"{path}.host", rule.host, "must be a DNS name, not an IP address")
        errors.invalid_each(f"{path}.host", rule.host, _host(rule.host))
    if rule.http is None:
        return
    paths = rule.http.paths or ()
    if not paths:
        errors.required(f"{path}.http.paths")
    for i, one in enumerate(paths):
        _path(errors, f"{path}.http.paths[{i}]", one)


def _path(errors: FieldErrors, path: str, given: networking_v1.HTTPIngressPath) -> None:
    where, type_ = given.path, given.pathType
    if not type_:
        errors.required(f"{path}.pathType", "pathType must be specified")
        return
    at = f"{path}.path"
    if type_ not in _PATH_TYPES:
        errors.not_supported(f"{path}.pathType", type_, _PATH_TYPES)
    elif (where or type_ != "ImplementationSpecific") and not where.startswith("/"):
        errors.invalid(at, where, "must be an absolute path")
    if type_ in ("Exact", "Prefix"):
        for sequence in _SEQUENCES:
            if sequence in where:
                errors.invalid(at, where, f"must not contain '{sequence}'")
        for suffix in _SUFFIXES:
            if where.endswith(suffix):
                errors.invalid(at, where, f"cannot end with '{suffix}'")
    _backend(errors, f"{path}.backend", given.backend)


def _backend(errors: FieldErrors, path: str, backend: networking_v1.IngressBackend) -> None:
    service = backend.service
    if backend.resource is not None and service is not None:
        errors.invalid(path, "", "cannot set both resource and service backends")
    elif backend.resource is not None:
        _reference(errors, f"{path}.resource", backend.resource)
    elif service is not None:
        _service(errors, path, service)
    else:
        errors.invalid(path, "", "resource or service backend is required")


def _service(errors: FieldErrors, path: str, service: networking_v1.IngressServiceBackend) -> None:
    if not service.name:
        errors.required(f"{path}.service.name")
    else:
        errors.invalid_each(f"{path}.service.name", service.name, names.label(service.name))
    port = service.port
    if port is None or not (port.name or port.number):
        errors.required(path, "port name or number is required")
    elif port.name and port.number:
        errors.invalid(path, "", "cannot set both port name & port number")
    elif port.name:
        errors.invalid_each(f"{path}.service.port.name", port.name, names.port_name(port.name))
    else:
        errors.invalid_each(f"{path}.service.port.number", port.number, names.port(port.number))


def _reference(
    errors: FieldErrors,
    path: str,
    ref: v1.TypedLocalObjectReference | networking_v1.IngressClassParametersReference,
) -> None:
    if ref.apiGroup is not None:
        errors.invalid_each(f"{path}.apiGroup", ref.apiGroup, names.subdomain(ref.apiGroup))
    for name in ("kind", "name"):
        value = getattr(ref, name)
        if not value:
            errors.required(f"{path}.{name}")
        else:
            errors.invalid_each(f"{path}.{name}", value, names.segment(value))


def status(errors: FieldErrors, new: networking_v1.Ingress, old: networking_v1.Ingress) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    known = [one.ip for one in old.status.loadBalancer.ingress if one.ip]
    for i, one in enumerate(new.status.loadBalancer.ingress):
        at = f"status.loadBalancer.ingress[{i}]"
        if one.ip:
            addresses.valid(errors, f"{at}.ip", one.ip, known)
        hostname(errors, f"{at}.hostname", one.hostname)


# -- classes ----------------------------------------------------------------------------------


def class_create(errors: FieldErrors, obj: networking_v1.IngressClass) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _class(errors, obj.spec)


def class_update(
    errors: FieldErrors, new: networking_v1.IngressClass, old: networking_v1.IngressClass
) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    errors.immutable("spec.controller", new.spec.controller, old.spec.controller)
    meta.again(errors, new.metadata, old.metadata, names.subdomain, namespaced=False)
    _class(errors, new.spec)


def _class(errors: FieldErrors, spec: networking_v1.IngressClassSpec) -> None:
    if len(spec.controller) > _CONTROLLER_LENGTH:
        errors.too_long("spec.controller", _CONTROLLER_LENGTH)
    names.domain_path(errors, "spec.controller", spec.controller)
    params = spec.parameters
    if params is None:
        return
    path = "spec.parameters"
    _reference(errors, path, params)
    if params.scope is None:
        errors.required(f"{path}.scope")
    elif params.scope not in _SCOPES:
        errors.not_supported(f"{path}.scope", params.scope, _SCOPES)
    elif params.scope == "Cluster":
        if params.namespace is not None:
            errors.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif params.namespace is None:
        errors.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    else:
        errors.invalid_each(f"{path}.namespace", params.namespace, names.label(params.namespace))
