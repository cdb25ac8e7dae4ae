"""Validation of NetworkPolicies, ServiceCIDRs and IPAddresses."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import networking_v1
from steersman.api.ip_addresses import parse_cidr
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, go_struct
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_label_selector

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_POLICY_TYPES = ("Ingress", "Egress")


def validate_network_policy(errors: FieldErrors, policy: networking_v1.NetworkPolicy) -> None:
    meta.validate_object_meta(errors, policy.metadata)
    _validate_network_policy_spec(errors, policy.spec)


def validate_network_policy_update(
    errors: FieldErrors, new: networking_v1.NetworkPolicy, old: networking_v1.NetworkPolicy
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _validate_network_policy_spec(errors, new.spec)


def _validate_network_policy_spec(errors: FieldErrors, spec: networking_v1.NetworkPolicySpec) -> None:
    validate_label_selector(errors, "spec.podSelector", spec.podSelector)
    for i, ingress in enumerate(spec.ingress):
        _validate_ports(errors, f"spec.ingress[{i}].ports", ingress.ports)
        _validate_peers(errors, f"spec.ingress[{i}].from", ingress.from_)
    for i, egress in enumerate(spec.egress):
        _validate_ports(errors, f"spec.egress[{i}].ports", egress.ports)
        _validate_peers(errors, f"spec.egress[{i}].to", egress.to)
    types = spec.policyTypes
    if len(types) > len(_POLICY_TYPES):
        errors.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for i, type_ in enumerate(types):
        if type_ not in _POLICY_TYPES:
            errors.not_supported(f"spec.policyTypes[{i}]", type_, _POLICY_TYPES)


def _validate_ports(
    errors: FieldErrors, path: str, ports: tuple[networking_v1.NetworkPolicyPort, ...]
) -> None:
    for i, port in enumerate(ports):
        at, number, end = f"{path}[{i}]", port.port, port.endPort
        if port.protocol is not None and port.protocol not in _PROTOCOLS:
            errors.not_supported(f"{at}.protocol", port.protocol, _PROTOCOLS)
        if number is None:
            if end is not None:
                without = "may not be specified when `port` is not specified"
                errors.invalid(f"{at}.endPort", end, without)
        elif isinstance(number, int):
            errors.invalid_each(f"{at}.port", number, names.port_number(number))
            if end is not None:
                if end < number:
                    errors.invalid(f"{at}.endPort", number, "must be greater than or equal to `port`")
                errors.invalid_each(f"{at}.endPort", end, names.port_number(end))
        else:
            if end is not None:
                named = "may not be specified when `port` is non-numeric"
                errors.invalid(f"{at}.endPort", end, named)
            errors.invalid_each(f"{at}.port", number, names.port_name(number))


def _validate_peers(
    errors: FieldErrors, path: str, peers: tuple[networking_v1.NetworkPolicyPeer, ...]
) -> None:
    for i, peer in enumerate(peers):
        at = f"{path}[{i}]"
        validate_label_selector(errors, f"{at}.podSelector", peer.podSelector)
        validate_label_selector(errors, f"{at}.namespaceSelector", peer.namespaceSelector)
        others = peer.podSelector is not None or peer.namespaceSelector is not None
        if peer.ipBlock is not None:
            _validate_ip_block(errors, f"{at}.ipBlock", peer.ipBlock)
            if others:
                errors.forbidden(at, "may not specify both ipBlock and another peer")
        elif not others:
            errors.required(at, "must specify a peer")


def _validate_ip_block(errors: FieldErrors, path: str, block: networking_v1.IPBlock) -> None:
    if not block.cidr:
        errors.required(f"{path}.cidr")
        return
    addresses.validate_cidr(errors, f"{path}.cidr", block.cidr)
    block_network = parse_cidr(block.cidr)
    if block_network is None:
        return
    for i, hole in enumerate(block.except_):
        at = f"{path}.except[{i}]"
        addresses.validate_cidr(errors, at, hole)
        hole_network = parse_cidr(hole)
        if hole_network is None:
            continue
        inside = (
            hole_network.version == block_network.version and hole_network.network_address in block_network
        )
        if not inside or hole_network.prefixlen <= block_network.prefixlen:
            errors.invalid(at, hole, "must be a strict subset of `cidr`")


# -- ServiceCIDRs and IPAddresses -------------------------------------------------------------


def validate_service_cidr(errors: FieldErrors, obj: networking_v1.ServiceCIDR) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_cidrs(errors, obj.spec.cidrs)


def validate_service_cidr_update(
    errors: FieldErrors, new: networking_v1.ServiceCIDR, old: networking_v1.ServiceCIDR
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    now, was = new.spec.cidrs, old.spec.cidrs
    if len(now) == len(was):
        for i, (after, before) in enumerate(zip(now, was, strict=True)):
            errors.immutable(f"spec.cidrs[{i}]", after, before)
    elif len(was) == 1 and len(now) == 2:
        errors.immutable("spec.cidrs[0]", now[0], was[0])
        _validate_cidrs(errors, now)
    else:
        errors.invalid("spec.cidrs", now, IMMUTABLE)


def _validate_cidrs(errors: FieldErrors, cidrs: tuple[str, ...]) -> None:
    if not cidrs:
        errors.required("spec.cidrs", "at least one CIDR required")
        return
    if len(cidrs) > 2:
        errors.invalid("spec.cidrs", go_struct(CIDRs=cidrs), "may only hold up to 2 values")
        return
    for i, cidr in enumerate(cidrs):
        addresses.validate_canonical_cidr(errors, f"spec.cidrs[{i}]", cidr)
    if len(cidrs) == 2 and not addresses.one_per_family(cidrs):
        errors.invalid(
            "spec.cidrs",
            cidrs,
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        )


def _ip_address_name(name: str) -> tuple[str, ...]:
    errors = FieldErrors()
    addresses.validate_canonical_ip(errors, "", name)
    return tuple(problem.message.partition('": ')[2] for problem in errors)


def validate_ip_address(errors: FieldErrors, obj: networking_v1.IPAddress) -> None:
    meta.validate_object_meta(errors, obj.metadata, _ip_address_name, namespaced=False)
    parent = obj.spec.parentRef
    if parent is None:
        errors.required("spec.parentRef")
        return
    if parent.group:
        errors.invalid_each("spec.parentRef.group", parent.group, names.dns1123_subdomain(parent.group))
    for name, value in (("resource", parent.resource), ("name", parent.name)):
        if not value:
            errors.required(f"spec.parentRef.{name}")
        else:
            errors.invalid_each(f"spec.parentRef.{name}", value, names.path_segment(value))
    if parent.namespace:
        errors.invalid_each(
            "spec.parentRef.namespace", parent.namespace, names.path_segment(parent.namespace)
        )


def validate_ip_address_update(
    errors: FieldErrors, new: networking_v1.IPAddress, old: networking_v1.IPAddress
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    errors.immutable("spec.parentRef", new.spec.parentRef, old.spec.parentRef)


RULES: Mapping[GroupKind, AnyRules] = {
    ("networking.k8s.io", "IPAddress"): Rules[networking_v1.IPAddress](
        validate_ip_address, validate_ip_address_update
    ),
    ("networking.k8s.io", "NetworkPolicy"): Rules[networking_v1.NetworkPolicy](
        validate_network_policy, validate_network_policy_update
    ),
    ("networking.k8s.io", "ServiceCIDR"): Rules[networking_v1.ServiceCIDR](
        validate_service_cidr, validate_service_cidr_update
    ),
}
