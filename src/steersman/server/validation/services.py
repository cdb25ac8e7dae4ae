"""Validation of Services."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.ip_addresses import parse_ip
from steersman.server.validation import addresses, names, service_addresses
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, go_struct
from steersman.server.validation.pods.containers import PROTOCOLS
from steersman.server.validation.pods.probes import validate_port_or_name
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

NODE_PORTS = range(30000, 32768)
"""The range of node ports (``--service-node-port-range``)."""

_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_TRAFFIC_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_TOPOLOGY_HINTS_ANNOTATION = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE_ANNOTATION = "service.kubernetes.io/topology-mode"
_SOURCE_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"
_MAX_AFFINITY_SECONDS = 86400
_LOAD_BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"


def validate_service(errors: FieldErrors, service: v1.Service) -> None:
    _validate_allocation(errors, service, None)
    if not errors:
        meta.validate_object_meta(errors, service.metadata, names.dns1123_label)
        _validate_service_fields(errors, service, None)


def validate_service_update(errors: FieldErrors, new: v1.Service, old: v1.Service) -> None:
    if new.spec is old.spec and new.metadata.annotations is old.metadata.annotations:
        meta.validate_object_meta_update(errors, new.metadata, old.metadata)
        return
    before = len(errors)
    _validate_allocation(errors, new, old)
    if len(errors) > before:
        return
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    service_addresses.validate_cluster_ips_update(errors, new.spec, old.spec)
    service_addresses.validate_ip_families_update(errors, new.spec, old.spec)
    _validate_load_balancer_class_update(errors, new.spec, old.spec)
    checked = _needs_health_check(new.spec) and _needs_health_check(old.spec)
    if checked and new.spec.healthCheckNodePort != old.spec.healthCheckNodePort:
        errors.forbidden("spec.healthCheckNodePort", "field is immutable")
    _validate_service_fields(errors, new, old)


def _validate_allocation(errors: FieldErrors, service: v1.Service, old: v1.Service | None) -> None:
    """Validates what upstream refuses while allocating cluster IPs and node ports, before any other rule."""
    before = len(errors)
    if service.spec.type != "ExternalName":
        service_addresses.validate_requested_ips(errors, service.spec, None if old is None else old.spec)
    if len(errors) > before:
        return
    existing = [] if old is None else [port.nodePort for port in old.spec.ports]
    if service.spec.type not in ("NodePort", "LoadBalancer"):
        return
    taken: dict[tuple[str, int], int] = {}
    for i, port in enumerate(service.spec.ports):
        number = port.nodePort
        # Two entries of one port may share a node port here; a later rule refuses the duplicate.
        if number and taken.setdefault((port.protocol, number), port.port) != port.port:
            at = f"spec.ports[{i}].nodePort"
            errors.invalid(at, number, "provided port is already allocated")
            return
        if number and number not in NODE_PORTS and number not in existing:
            errors.invalid(
                f"spec.ports[{i}].nodePort",
                number,
                "provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}",
            )
            return


def _validate_service_fields(errors: FieldErrors, service: v1.Service, old: v1.Service | None) -> None:
    spec, annotations = service.spec, service.metadata.annotations
    if (
        _TOPOLOGY_MODE_ANNOTATION in annotations
        and annotations.get(_TOPOLOGY_HINTS_ANNOTATION, annotations[_TOPOLOGY_MODE_ANNOTATION])
        != annotations[_TOPOLOGY_MODE_ANNOTATION]
    ):
        same = f"must match annotations[{_TOPOLOGY_HINTS_ANNOTATION}] when both are specified"
        errors.invalid(
            f"metadata.annotations[{_TOPOLOGY_MODE_ANNOTATION}]", annotations[_TOPOLOGY_MODE_ANNOTATION], same
        )
    if not spec.ports and not service_addresses.is_headless(spec) and spec.type != "ExternalName":
        errors.required("spec.ports")
    _validate_service_type(errors, spec)
    _validate_service_ports(errors, spec)
    if spec.selector:
        meta.validate_labels(errors, "spec.selector", spec.selector)
    errors.enum("spec.sessionAffinity", spec.sessionAffinity, _AFFINITIES)
    _validate_session_affinity_config(errors, "spec.sessionAffinityConfig", spec)
    existing = () if old is None else old.spec.externalIPs
    for i, address in enumerate(spec.externalIPs):
        if addresses.validate_ip(errors, f"spec.externalIPs[{i}]", address, existing):
            addresses.validate_endpoint_ip(errors, f"spec.externalIPs[{i}]", address)
    errors.enum("spec.type", spec.type, _SERVICE_TYPES)
    _validate_port_numbers(errors, spec)
    _validate_source_ranges(errors, service, old)
    _validate_load_balancer_fields(errors, spec)
    _validate_traffic_policies(errors, spec)


def _validate_service_type(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    if spec.type in ("LoadBalancer", "NodePort"):
        if service_addresses.is_headless(spec):
            message = f"may not be set to 'None' for {spec.type} services"
            errors.invalid("spec.clusterIPs[0]", "None", message)
    elif spec.type == "ExternalName":
        message = "may not be set for ExternalName services"
        if spec.clusterIPs:
            errors.forbidden("spec.clusterIPs", message)
        if spec.ipFamilies:
            errors.forbidden("spec.ipFamilies", message)
        if spec.ipFamilyPolicy is not None:
            errors.forbidden("spec.ipFamilyPolicy", message)
        name = spec.externalName.removesuffix(".")
        if name:
            errors.invalid_each("spec.externalName", name, names.dns1123_subdomain(name))
        else:
            errors.required("spec.externalName")


def _validate_service_ports(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    seen: list[str] = []
    for i, port in enumerate(spec.ports):
        at = f"spec.ports[{i}]"
        if not port.name:
            if len(spec.ports) > 1:
                errors.required(f"{at}.name")
        else:
            errors.invalid_each(f"{at}.name", port.name, names.dns1123_label(port.name))
            if port.name in seen:
                errors.duplicate(f"{at}.name", port.name)
            else:
                seen.append(port.name)
        errors.invalid_each(f"{at}.port", port.port, names.port_number(port.port))
        errors.enum(f"{at}.protocol", port.protocol, PROTOCOLS)
        validate_port_or_name(errors, f"{at}.targetPort", port.targetPort)
        if port.appProtocol is not None:
            errors.invalid_each(f"{at}.appProtocol", port.appProtocol, names.qualified_name(port.appProtocol))


def _validate_port_numbers(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    """Ports and node ports are unique by protocol and number."""
    if spec.type == "ClusterIP":
        for i, port in enumerate(spec.ports):
            if port.nodePort:
                only = "may not be used when `type` is 'ClusterIP'"
                errors.forbidden(f"spec.ports[{i}].nodePort", only)
    taken: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.ports):
        if port.nodePort:
            if (port.protocol, port.nodePort) in taken:
                errors.duplicate(f"spec.ports[{i}].nodePort", port.nodePort)
            taken.add((port.protocol, port.nodePort))
    taken.clear()
    for i, port in enumerate(spec.ports):
        if (port.protocol, port.port) in taken:
            shown = go_struct(
                Name="", Protocol=port.protocol, AppProtocol=None, Port=port.port, TargetPort=0, NodePort=0
            )
            errors.duplicate(f"spec.ports[{i}]", shown)
        taken.add((port.protocol, port.port))


def _validate_session_affinity_config(errors: FieldErrors, path: str, spec: v1.ServiceSpec) -> None:
    config = spec.sessionAffinityConfig
    if spec.sessionAffinity == "None":
        if config is not None:
            errors.forbidden(path, "must not be set when session affinity is None")
        return
    if spec.sessionAffinity != "ClientIP":
        return
    detail = "when session affinity type is ClientIP"
    if config is None:
        errors.required(path, detail)
    elif config.clientIP is None:
        errors.required(f"{path}.clientIP", detail)
    elif config.clientIP.timeoutSeconds is None:
        errors.required(f"{path}.clientIP.timeoutSeconds", detail)
    elif not 0 < config.clientIP.timeoutSeconds <= _MAX_AFFINITY_SECONDS:
        least = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
        errors.invalid(f"{path}.clientIP.timeoutSeconds", config.clientIP.timeoutSeconds, least)


def _validate_source_ranges(errors: FieldErrors, service: v1.Service, old: v1.Service | None) -> None:
    """Validates loadBalancerSourceRanges, or the annotation that preceded the field."""
    spec = service.spec
    annotation = service.metadata.annotations.get(_SOURCE_RANGES_ANNOTATION)
    if spec.loadBalancerSourceRanges:
        path = "spec.LoadBalancerSourceRanges"
        if spec.type != "LoadBalancer":
            errors.forbidden(path, _LOAD_BALANCER_ONLY)
        existing = [] if old is None else [cidr.strip() for cidr in old.spec.loadBalancerSourceRanges]
        for i, block in enumerate(spec.loadBalancerSourceRanges):
            addresses.validate_cidr(errors, f"{path}[{i}]", block.strip(), existing)
    elif annotation is not None:
        path = f"metadata.annotations[{_SOURCE_RANGES_ANNOTATION}]"
        if spec.type != "LoadBalancer":
            errors.forbidden(path, _LOAD_BALANCER_ONLY)
        if (
            old is None or old.metadata.annotations.get(_SOURCE_RANGES_ANNOTATION) != annotation
        ) and annotation.strip():
            for block in annotation.split(","):
                addresses.validate_cidr(errors, path, block.strip())


def _validate_load_balancer_fields(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    is_load_balancer = spec.type == "LoadBalancer"
    if spec.allocateLoadBalancerNodePorts is not None and not is_load_balancer:
        errors.forbidden("spec.allocateLoadBalancerNodePorts", _LOAD_BALANCER_ONLY)
    if is_load_balancer and spec.allocateLoadBalancerNodePorts is None:
        errors.required("allocateLoadBalancerNodePorts")
    if spec.loadBalancerClass is not None:
        path = "spec.loadBalancerClass"
        if is_load_balancer:
            errors.invalid_each(path, spec.loadBalancerClass, names.qualified_name(spec.loadBalancerClass))
        else:
            errors.forbidden(path, _LOAD_BALANCER_ONLY)


def _needs_health_check(spec: v1.ServiceSpec) -> bool:
    return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"


def _validate_traffic_policies(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    is_external = spec.type in ("LoadBalancer", "NodePort") or (spec.type == "ClusterIP" and spec.externalIPs)
    policy, path = spec.externalTrafficPolicy, "spec.externalTrafficPolicy"
    if is_external:
        errors.enum(path, policy, _TRAFFIC_POLICIES)
    elif policy:
        errors.invalid(path, policy, "may only be set for externally-accessible services")
    port = spec.healthCheckNodePort
    if not _needs_health_check(spec):
        if port:
            only = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.invalid("spec.healthCheckNodePort", port, only)
    elif port:
        # differs: no health check port is allocated, so none is required.
        errors.invalid_each("spec.healthCheckNodePort", port, names.port_number(port))
    internal_policy = spec.internalTrafficPolicy
    if internal_policy is None:
        if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
            errors.required("spec.internalTrafficPolicy")
    elif internal_policy not in _TRAFFIC_POLICIES:
        errors.not_supported("spec.internalTrafficPolicy", internal_policy, _TRAFFIC_POLICIES)
    if spec.trafficDistribution is not None and spec.trafficDistribution not in _TRAFFIC_DISTRIBUTIONS:
        errors.not_supported("spec.trafficDistribution", spec.trafficDistribution, _TRAFFIC_DISTRIBUTIONS)


def _validate_load_balancer_class_update(
    errors: FieldErrors, new: v1.ServiceSpec, old: v1.ServiceSpec
) -> None:
    if new.type == old.type == "LoadBalancer" and new.loadBalancerClass != old.loadBalancerClass:
        errors.invalid("spec.loadBalancerClass", new.loadBalancerClass, service_addresses.IMMUTABLE_ONCE_SET)


# -- status -----------------------------------------------------------------------------------


def validate_service_status(errors: FieldErrors, new: v1.Service, old: v1.Service) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    path = "status.loadBalancer.ingress"
    ingresses = new.status.loadBalancer.ingress
    if new.spec.type != "LoadBalancer":
        if ingresses:
            errors.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    existing = [ingress.ip for ingress in old.status.loadBalancer.ingress if ingress.ip]
    for i, ingress in enumerate(ingresses):
        at = f"{path}[{i}]"
        if ingress.ip:
            addresses.validate_ip(errors, f"{at}.ip", ingress.ip, existing)
        if ingress.ipMode is None:
            if ingress.ip:
                errors.required(f"{at}.ipMode", "must be specified when `ip` is set")
        elif not ingress.ip:
            errors.forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set")
        elif ingress.ipMode not in _IP_MODES:
            errors.not_supported(f"{at}.ipMode", ingress.ipMode, _IP_MODES)
        validate_ingress_hostname(errors, f"{at}.hostname", ingress.hostname)


def validate_ingress_hostname(errors: FieldErrors, path: str, name: str) -> None:
    """Validates the hostname of a load balancer's ingress point."""
    if name:
        errors.invalid_each(path, name, names.dns1123_subdomain(name))
        if parse_ip(name) is not None:
            errors.invalid(path, name, "must be a DNS name, not an IP address")


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "Service"): Rules[v1.Service](
        validate_service, validate_service_update, status=validate_service_status
    ),
}
