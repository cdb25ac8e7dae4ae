"""Services."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import addresses, service_addresses
from steersman.server.validation import metadata as meta
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import Found, fields
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


def create(found: Found, service: v1.Service) -> None:
    _allocation(found, service, None)
    if not found:
        meta.check(found, service.metadata, text.label)
        _service(found, service, None)


def update(found: Found, new: v1.Service, old: v1.Service) -> None:
    if new.spec is old.spec and new.metadata.annotations is old.metadata.annotations:
        meta.check_update(found, new.metadata, old.metadata)
        return
    before = len(found)
    _allocation(found, new, old)
    if len(found) > before:
        return
    meta.check_update(found, new.metadata, old.metadata)
    service_addresses.ips_kept(found, new.spec, old.spec)
    service_addresses.families_kept(found, new.spec, old.spec)
    _class_kept(found, new.spec, old.spec)
    checked = _needs_health_check(new.spec) and _needs_health_check(old.spec)
    if checked and new.spec.healthCheckNodePort != old.spec.healthCheckNodePort:
        found.forbidden("spec.healthCheckNodePort", "field is immutable")
    _service(found, new, old)


def _allocation(found: Found, service: v1.Service, old: v1.Service | None) -> None:
    """What would be refused while addresses and ports are given out, before anything else is seen to."""
    before = len(found)
    if service.spec.type != "ExternalName":
        service_addresses.asked(found, service.spec, None if old is None else old.spec)
    if len(found) > before:
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
            found.invalid(at, number, "provided port is already allocated")
            return
        if number and number not in NODE_PORTS and number not in known:
            found.invalid(
                f"spec.ports[{i}].nodePort",
                number,
                "provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}",
            )
            return


def _service(found: Found, service: v1.Service, old: v1.Service | None) -> None:
    spec, annotations = service.spec, service.metadata.annotations
    if _MODE in annotations and annotations.get(_HINTS, annotations[_MODE]) != annotations[_MODE]:
        same = f"must match annotations[{_HINTS}] when both are specified"
        found.invalid(f"metadata.annotations[{_MODE}]", annotations[_MODE], same)
    if not spec.ports and not service_addresses.is_headless(spec) and spec.type != "ExternalName":
        found.required("spec.ports")
    _type_rules(found, spec)
    _ports(found, spec)
    if spec.selector:
        meta.labels(found, "spec.selector", spec.selector)
    found.choose("spec.sessionAffinity", spec.sessionAffinity, _AFFINITIES)
    _affinity(found, "spec.sessionAffinityConfig", spec)
    known = () if old is None else old.spec.externalIPs
    for i, address in enumerate(spec.externalIPs):
        if addresses.valid(found, f"spec.externalIPs[{i}]", address, known):
            addresses.endpoint(found, f"spec.externalIPs[{i}]", address)
    found.choose("spec.type", spec.type, _TYPES)
    _port_numbers(found, spec)
    _source_ranges(found, service, old)
    _balancing(found, spec)
    _traffic(found, spec)


def _type_rules(found: Found, spec: v1.ServiceSpec) -> None:
    if spec.type in ("LoadBalancer", "NodePort"):
        if service_addresses.is_headless(spec):
            says = f"may not be set to 'None' for {spec.type} services"
            found.invalid("spec.clusterIPs[0]", "None", says)
    elif spec.type == "ExternalName":
        says = "may not be set for ExternalName services"
        if spec.clusterIPs:
            found.forbidden("spec.clusterIPs", says)
        if spec.ipFamilies:
            found.forbidden("spec.ipFamilies", says)
        if spec.ipFamilyPolicy is not None:
            found.forbidden("spec.ipFamilyPolicy", says)
        name = spec.externalName.removesuffix(".")
        if name:
            found.each("spec.externalName", name, text.subdomain(name))
        else:
            found.required("spec.externalName")


def _ports(found: Found, spec: v1.ServiceSpec) -> None:
    names: list[str] = []
    for i, port in enumerate(spec.ports):
        at = f"spec.ports[{i}]"
        if not port.name:
            if len(spec.ports) > 1:
                found.required(f"{at}.name")
        else:
            found.each(f"{at}.name", port.name, text.label(port.name))
            if port.name in names:
                found.duplicate(f"{at}.name", port.name)
            else:
                names.append(port.name)
        found.each(f"{at}.port", port.port, text.port(port.port))
        found.choose(f"{at}.protocol", port.protocol, PROTOCOLS)
        port_or_name(found, f"{at}.targetPort", port.targetPort)
        if port.appProtocol is not None:
            found.each(f"{at}.appProtocol", port.appProtocol, text.qualified(port.appProtocol))


def _port_numbers(found: Found, spec: v1.ServiceSpec) -> None:
    """Ports are told apart by number and protocol, here and on the nodes."""
    if spec.type == "ClusterIP":
        for i, port in enumerate(spec.ports):
            if port.nodePort:
                only = "may not be used when `type` is 'ClusterIP'"
                found.forbidden(f"spec.ports[{i}].nodePort", only)
    taken: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.ports):
        if port.nodePort:
            if (port.protocol, port.nodePort) in taken:
                found.duplicate(f"spec.ports[{i}].nodePort", port.nodePort)
            taken.add((port.protocol, port.nodePort))
    taken.clear()
    for i, port in enumerate(spec.ports):
        if (port.protocol, port.port) in taken:
            shown = fields(
                Name="", Protocol=port.protocol, AppProtocol=None, Port=port.port, TargetPort=0, NodePort=0
            )
            found.duplicate(f"spec.ports[{i}]", shown)
        taken.add((port.protocol, port.port))


def _affinity(found: Found, path: str, spec: v1.ServiceSpec) -> None:
    config = spec.sessionAffinityConfig
    if spec.sessionAffinity == "None":
        if config is not None:
            found.forbidden(path, "must not be set when session affinity is None")
        return
    if spec.sessionAffinity != "ClientIP":
        return
    why = "when session affinity type is ClientIP"
    if config is None:
        found.required(path, why)
    elif config.clientIP is None:
        found.required(f"{path}.clientIP", why)
    elif config.clientIP.timeoutSeconds is None:
        found.required(f"{path}.clientIP.timeoutSeconds", why)
    elif not 0 < config.clientIP.timeoutSeconds <= _DAY:
        least = f"must be greater than 0 and less than {_DAY}"
        found.invalid(f"{path}.clientIP.timeoutSeconds", config.clientIP.timeoutSeconds, least)


def _source_ranges(found: Found, service: v1.Service, old: v1.Service | None) -> None:
    """Who may reach a load balancer: a field, and an annotation from before it."""
    spec = service.spec
    said = service.metadata.annotations.get(_RANGES)
    if spec.loadBalancerSourceRanges:
        path = "spec.LoadBalancerSourceRanges"
        if spec.type != "LoadBalancer":
            found.forbidden(path, _BALANCED_ONLY)
        known = [] if old is None else [text_.strip() for text_ in old.spec.loadBalancerSourceRanges]
        for i, block in enumerate(spec.loadBalancerSourceRanges):
            addresses.valid_block(found, f"{path}[{i}]", block.strip(), known)
    elif said is not None:
        path = f"metadata.annotations[{_RANGES}]"
        if spec.type != "LoadBalancer":
            found.forbidden(path, _BALANCED_ONLY)
        if (old is None or old.metadata.annotations.get(_RANGES) != said) and said.strip():
            for block in said.split(","):
                addresses.valid_block(found, path, block.strip())


def _balancing(found: Found, spec: v1.ServiceSpec) -> None:
    balanced = spec.type == "LoadBalancer"
    if spec.allocateLoadBalancerNodePorts is not None and not balanced:
        found.forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY)
    if balanced and spec.allocateLoadBalancerNodePorts is None:
        found.required("allocateLoadBalancerNodePorts")
    if spec.loadBalancerClass is not None:
        path = "spec.loadBalancerClass"
        if balanced:
            found.each(path, spec.loadBalancerClass, text.qualified(spec.loadBalancerClass))
        else:
            found.forbidden(path, _BALANCED_ONLY)


def _needs_health_check(spec: v1.ServiceSpec) -> bool:
    return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"


def _traffic(found: Found, spec: v1.ServiceSpec) -> None:
    outside = spec.type in ("LoadBalancer", "NodePort") or (spec.type == "ClusterIP" and spec.externalIPs)
    policy, path = spec.externalTrafficPolicy, "spec.externalTrafficPolicy"
    if outside:
        found.choose(path, policy, _TRAFFIC)
    elif policy:
        found.invalid(path, policy, "may only be set for externally-accessible services")
    port = spec.healthCheckNodePort
    if not _needs_health_check(spec):
        if port:
            only = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            found.invalid("spec.healthCheckNodePort", port, only)
    elif port:
        # differs: no port is given out for this, so none is demanded.
        found.each("spec.healthCheckNodePort", port, text.port(port))
    inside = spec.internalTrafficPolicy
    if inside is None:
        if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
            found.required("spec.internalTrafficPolicy")
    elif inside not in _TRAFFIC:
        found.unsupported("spec.internalTrafficPolicy", inside, _TRAFFIC)
    if spec.trafficDistribution is not None and spec.trafficDistribution not in _DISTRIBUTIONS:
        found.unsupported("spec.trafficDistribution", spec.trafficDistribution, _DISTRIBUTIONS)


def _class_kept(found: Found, new: v1.ServiceSpec, old: v1.ServiceSpec) -> None:
    if new.type == old.type == "LoadBalancer" and new.loadBalancerClass != old.loadBalancerClass:
        found.invalid("spec.loadBalancerClass", new.loadBalancerClass, service_addresses.ONCE)


# -- status -----------------------------------------------------------------------------------


def status(found: Found, new: v1.Service, old: v1.Service) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    path = "status.loadBalancer.ingress"
    given = new.status.loadBalancer.ingress
    if new.spec.type != "LoadBalancer":
        if given:
            found.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    known = [one.ip for one in old.status.loadBalancer.ingress if one.ip]
    for i, one in enumerate(given):
        at = f"{path}[{i}]"
        if one.ip:
            addresses.valid(found, f"{at}.ip", one.ip, known)
        if one.ipMode is None:
            if one.ip:
                found.required(f"{at}.ipMode", "must be specified when `ip` is set")
        elif not one.ip:
            found.forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set")
        elif one.ipMode not in _IP_MODES:
            found.unsupported(f"{at}.ipMode", one.ipMode, _IP_MODES)
        hostname(found, f"{at}.hostname", one.hostname)


def hostname(found: Found, path: str, name: str) -> None:
    """Where a load balancer answers by name."""
    if name:
        found.each(path, name, text.subdomain(name))
        if addresses.parse(name) is not None:
            found.invalid(path, name, "must be a DNS name, not an IP address")
