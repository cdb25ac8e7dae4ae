"""Services."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import addresses, service_addresses
from steersman.server.validation import metadata as meta
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors, go_struct
from steersman.server.validation.pods.containers import PROTOCOLS
from steersman.server.validation.pods.probes import port_or_name

NODE_PORTS = range(30000, 32768)
"""The ports of nodes that services may have."""

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_HINTS = "service.kubernetes.io/topology-aware-hints"
_MODE = "service.kubernetes.io/topology-mode"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DAY = 86400
_BALANCED_ONLY = "may only be used when `type` is 'LoadBalancer'"


def create(errors: FieldErrors, service: v1.Service) -> None:
    _allocation(errors, service, None)
    if not errors:
        meta.check(errors, service.metadata, text.label)
        _service(errors, service, None)


def update(errors: FieldErrors, new: v1.Service, old: v1.Service) -> None:
    if new.spec is old.spec and new.metadata.annotations is old.metadata.annotations:
        meta.check_update(errors, new.metadata, old.metadata)
        return
    before = len(errors)
    _allocation(errors, new, old)
    if len(errors) > before:
        return
    meta.check_update(errors, new.metadata, old.metadata)
    service_addresses.ips_kept(errors, new.spec, old.spec)
    service_addresses.families_kept(errors, new.spec, old.spec)
    _class_kept(errors, new.spec, old.spec)
    checked = _needs_health_check(new.spec) and _needs_health_check(old.spec)
    if checked and new.spec.healthCheckNodePort != old.spec.healthCheckNodePort:
        errors.forbidden("spec.healthCheckNodePort", "field is immutable")
    _service(errors, new, old)


def _allocation(errors: FieldErrors, service: v1.Service, old: v1.Service | None) -> None:
    """What would be refused while addresses and ports are given out, before anything else is seen to."""
    before = len(errors)
    if service.spec.type != "ExternalName":
        service_addresses.asked(errors, service.spec, None if old is None else old.spec)
    if len(errors) > before:
        return
    known = [] if old is None else [port.nodePort for port in old.spec.ports]
    if service.spec.type not in ("NodePort", "LoadBalancer"):
        return
    taken: dict[tuple[str, int], int] = {}
    for i, port in enumerate(service.spec.ports):
        number = port.nodePort
        # The same port twice gets the same port on the nodes twice, and is refused for that.
        if number and taken.setdefault((port.protocol, number), port.port) != port.port:
            at = f"spec.ports[{i}].nodePort"
            errors.invalid(at, number, "provided port is already allocated")
            return
        if number and number not in NODE_PORTS and number not in known:
            errors.invalid(
                f"spec.ports[{i}].nodePort",
                number,
                "provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}",
            )
            return


def _service(errors: FieldErrors, service: v1.Service, old: v1.Service | None) -> None:
    spec, annotations = service.spec, service.metadata.annotations
    if _MODE in annotations and annotations.get(_HINTS, annotations[_MODE]) != annotations[_MODE]:
        same = f"must match annotations[{_HINTS}] when both are specified"
        errors.invalid(f"metadata.annotations[{_MODE}]", annotations[_MODE], same)
    if not spec.ports and not service_addresses.is_headless(spec) and spec.type != "ExternalName":
        errors.required("spec.ports")
    _type_rules(errors, spec)
    _ports(errors, spec)
    if spec.selector:
        meta.labels(errors, "spec.selector", spec.selector)
    errors.enum("spec.sessionAffinity", spec.sessionAffinity, _AFFINITIES)
    _affinity(errors, "spec.sessionAffinityConfig", spec)
    known = () if old is None else old.spec.externalIPs
    for i, address in enumerate(spec.externalIPs):
        if addresses.valid(errors, f"spec.externalIPs[{i}]", address, known):
            addresses.endpoint(errors, f"spec.externalIPs[{i}]", address)
    errors.enum("spec.type", spec.type, _TYPES)
    _port_numbers(errors, spec)
    _source_ranges(errors, service, old)
    _balancing(errors, spec)
    _traffic(errors, spec)


def _type_rules(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    if spec.type in ("LoadBalancer", "NodePort"):
        if service_addresses.is_headless(spec):
            says = f"may not be set to 'None' for {spec.type} services"
            errors.invalid("spec.clusterIPs[0]", "None", says)
    elif spec.type == "ExternalName":
        says = "may not be set for ExternalName services"
        if spec.clusterIPs:
            errors.forbidden("spec.clusterIPs", says)
        if spec.ipFamilies:
            errors.forbidden("spec.ipFamilies", says)
        if spec.ipFamilyPolicy is not None:
            errors.forbidden("spec.ipFamilyPolicy", says)
        name = spec.externalName.removesuffix(".")
        if name:
            errors.invalid_each("spec.externalName", name, text.subdomain(name))
        else:
            errors.required("spec.externalName")


def _ports(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    names: list[str] = []
    for i, port in enumerate(spec.ports):
        at = f"spec.ports[{i}]"
        if not port.name:
            if len(spec.ports) > 1:
                errors.required(f"{at}.name")
        else:
            errors.invalid_each(f"{at}.name", port.name, text.label(port.name))
            if port.name in names:
                errors.duplicate(f"{at}.name", port.name)
            else:
                names.append(port.name)
        errors.invalid_each(f"{at}.port", port.port, text.port(port.port))
        errors.enum(f"{at}.protocol", port.protocol, PROTOCOLS)
        port_or_name(errors, f"{at}.targetPort", port.targetPort)
        if port.appProtocol is not None:
            errors.invalid_each(f"{at}.appProtocol", port.appProtocol, text.qualified(port.appProtocol))


def _port_numbers(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    """Ports are told apart by number and protocol, here and on the nodes."""
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


def _affinity(errors: FieldErrors, path: str, spec: v1.ServiceSpec) -> None:
    config = spec.sessionAffinityConfig
    if spec.sessionAffinity == "None":
        if config is not None:
            errors.forbidden(path, "must not be set when session affinity is None")
        return
    if spec.sessionAffinity != "ClientIP":
        return
    why = "when session affinity type is ClientIP"
    if config is None:
        errors.required(path, why)
    elif config.clientIP is None:
        errors.required(f"{path}.clientIP", why)
    elif config.clientIP.timeoutSeconds is None:
        errors.required(f"{path}.clientIP.timeoutSeconds", why)
    elif not 0 < config.clientIP.timeoutSeconds <= _DAY:
        least = f"must be greater than 0 and less than {_DAY}"
        errors.invalid(f"{path}.clientIP.timeoutSeconds", config.clientIP.timeoutSeconds, least)


def _source_ranges(errors: FieldErrors, service: v1.Service, old: v1.Service | None) -> None:
    """Who may reach a load balancer: a field, and an annotation from before it."""
    spec = service.spec
    said = service.metadata.annotations.get(_RANGES)
    if spec.loadBalancerSourceRanges:
        path = "spec.LoadBalancerSourceRanges"
        if spec.type != "LoadBalancer":
            errors.forbidden(path, _BALANCED_ONLY)
        known = [] if old is None else [text_.strip() for text_ in old.spec.loadBalancerSourceRanges]
        for i, block in enumerate(spec.loadBalancerSourceRanges):
            addresses.valid_block(errors, f"{path}[{i}]", block.strip(), known)
    elif said is not None:
        path = f"metadata.annotations[{_RANGES}]"
        if spec.type != "LoadBalancer":
            errors.forbidden(path, _BALANCED_ONLY)
        if (old is None or old.metadata.annotations.get(_RANGES) != said) and said.strip():
            for block in said.split(","):
                addresses.valid_block(errors, path, block.strip())


def _balancing(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    balanced = spec.type == "LoadBalancer"
    if spec.allocateLoadBalancerNodePorts is not None and not balanced:
        errors.forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY)
    if balanced and spec.allocateLoadBalancerNodePorts is None:
        errors.required("allocateLoadBalancerNodePorts")
    if spec.loadBalancerClass is not None:
        path = "spec.loadBalancerClass"
        if balanced:
            errors.invalid_each(path, spec.loadBalancerClass, text.qualified(spec.loadBalancerClass))
        else:
            errors.forbidden(path, _BALANCED_ONLY)


def _needs_health_check(spec: v1.ServiceSpec) -> bool:
    return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"


def _traffic(errors: FieldErrors, spec: v1.ServiceSpec) -> None:
    outside = spec.type in ("LoadBalancer", "NodePort") or (spec.type == "ClusterIP" and spec.externalIPs)
    policy, path = spec.externalTrafficPolicy, "spec.externalTrafficPolicy"
    if outside:
        errors.enum(path, policy, _TRAFFIC)
    elif policy:
        errors.invalid(path, policy, "may only be set for externally-accessible services")
    port = spec.healthCheckNodePort
    if not _needs_health_check(spec):
        if port:
            only = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.invalid("spec.healthCheckNodePort", port, only)
    elif port:
        # differs: no port is given out for this, so none is demanded.
        errors.invalid_each("spec.healthCheckNodePort", port, text.port(port))
    inside = spec.internalTrafficPolicy
    if inside is None:
        if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
            errors.required("spec.internalTrafficPolicy")
    elif inside not in _TRAFFIC:
        errors.not_supported("spec.internalTrafficPolicy", inside, _TRAFFIC)
    if spec.trafficDistribution is not None and spec.trafficDistribution not in _DISTRIBUTIONS:
        errors.not_supported("spec.trafficDistribution", spec.trafficDistribution, _DISTRIBUTIONS)


def _class_kept(errors: FieldErrors, new: v1.ServiceSpec, old: v1.ServiceSpec) -> None:
    if new.type == old.type == "LoadBalancer" and new.loadBalancerClass != old.loadBalancerClass:
        errors.invalid("spec.loadBalancerClass", new.loadBalancerClass, service_addresses.ONCE)


# -- status -----------------------------------------------------------------------------------


def status(errors: FieldErrors, new: v1.Service, old: v1.Service) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    path = "status.loadBalancer.ingress"
    given = new.status.loadBalancer.ingress
    if new.spec.type != "LoadBalancer":
        if given:
            errors.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    known = [one.ip for one in old.status.loadBalancer.ingress if one.ip]
    for i, one in enumerate(given):
        at = f"{path}[{i}]"
        if one.ip:
            addresses.valid(errors, f"{at}.ip", one.ip, known)
        if one.ipMode is None:
            if one.ip:
                errors.required(f"{at}.ipMode", "must be specified when `ip` is set")
        elif not one.ip:
            errors.forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set")
        elif one.ipMode not in _IP_MODES:
            errors.not_supported(f"{at}.ipMode", one.ipMode, _IP_MODES)
        hostname(errors, f"{at}.hostname", one.hostname)


def hostname(errors: FieldErrors, path: str, name: str) -> None:
    """Where a load balancer answers by name."""
    if name:
        errors.invalid_each(path, name, text.subdomain(name))
        if addresses.parse(name) is not None:
            errors.invalid(path, name, "must be a DNS name, not an IP address")
