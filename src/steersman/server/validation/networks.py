"""Who may talk to whom: NetworkPolicies; and the blocks of addresses services are given from."""

from __future__ import annotations

from steersman.api.generated import networking_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, go_struct
from steersman.server.validation.selectors import label_selector

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


def create(errors: FieldErrors, policy: networking_v1.NetworkPolicy) -> None:
    meta.check(errors, policy.metadata)
    _spec(errors, policy.spec)


def update(errors: FieldErrors, new: networking_v1.NetworkPolicy, old: networking_v1.NetworkPolicy) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _spec(errors, new.spec)


def _spec(errors: FieldErrors, spec: networking_v1.NetworkPolicySpec) -> None:
    label_selector(errors, "spec.podSelector", spec.podSelector)
    for i, ingress in enumerate(spec.ingress):
        _ports(errors, f"spec.ingress[{i}].ports", ingress.ports)
        _peers(errors, f"spec.ingress[{i}].from", ingress.from_)
    for i, egress in enumerate(spec.egress):
        _ports(errors, f"spec.egress[{i}].ports", egress.ports)
        _peers(errors, f"spec.egress[{i}].to", egress.to)
    types = spec.policyTypes
    if len(types) > len(_TYPES):
        errors.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for i, type_ in enumerate(types):
        if type_ not in _TYPES:
            errors.not_supported(f"spec.policyTypes[{i}]", type_, _TYPES)


def _ports(errors: FieldErrors, path: str, ports: tuple[networking_v1.NetworkPolicyPort, ...]) -> None:
    for i, port in enumerate(ports):
        at, number, end = f"{path}[{i}]", port.port, port.endPort
        if port.protocol is not None and port.protocol not in _PROTOCOLS:
            errors.not_supported(f"{at}.protocol", port.protocol, _PROTOCOLS)
        if number is None:
            if end is not None:
                without = "may not be specified when `port` is not specified"
                errors.invalid(f"{at}.endPort", end, without)
        elif isinstance(number, int):
            errors.invalid_each(f"{at}.port", number, names.port(number))
            if end is not None:
                if end < number:
                    errors.invalid(f"{at}.endPort", number, "must be greater than or equal to `port`")
                errors.invalid_each(f"{at}.endPort", end, names.port(end))
        else:
            if end is not None:
                named = "may not be specified when `port` is non-numeric"
                errors.invalid(f"{at}.endPort", end, named)
            errors.invalid_each(f"{at}.port", number, names.port_name(number))


def _peers(errors: FieldErrors, path: str, peers: tuple[networking_v1.NetworkPolicyPeer, ...]) -> None:
    for i, peer in enumerate(peers):
        at = f"{path}[{i}]"
        label_selector(errors, f"{at}.podSelector", peer.podSelector)
        label_selector(errors, f"{at}.namespaceSelector", peer.namespaceSelector)
        others = peer.podSelector is not None or peer.namespaceSelector is not None
        if peer.ipBlock is not None:
            _block(errors, f"{at}.ipBlock", peer.ipBlock)
            if others:
                errors.forbidden(at, "may not specify both ipBlock and another peer")
        elif not others:
            errors.required(at, "must specify a peer")


def _block(errors: FieldErrors, path: str, block: networking_v1.IPBlock) -> None:
    if not block.cidr:
        errors.required(f"{path}.cidr")
        return
    addresses.valid_block(errors, f"{path}.cidr", block.cidr)
    whole = addresses.parse_block(block.cidr)
    if whole is None:
        return
    for i, hole in enumerate(block.except_):
        at = f"{path}.except[{i}]"
        addresses.valid_block(errors, at, hole)
        part = addresses.parse_block(hole)
        if part is None:
            continue
        inside = part.version == whole.version and part.network_address in whole
        if not inside or part.prefixlen <= whole.prefixlen:
            errors.invalid(at, hole, "must be a strict subset of `cidr`")


# -- ServiceCIDRs and IPAddresses -------------------------------------------------------------


def cidr_create(errors: FieldErrors, obj: networking_v1.ServiceCIDR) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _cidrs(errors, obj.spec.cidrs)


def cidr_update(errors: FieldErrors, new: networking_v1.ServiceCIDR, old: networking_v1.ServiceCIDR) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    now, was = new.spec.cidrs, old.spec.cidrs
    if len(now) == len(was):
        for i, (after, before) in enumerate(zip(now, was, strict=True)):
            errors.immutable(f"spec.cidrs[{i}]", after, before)
    elif len(was) == 1 and len(now) == 2:
        errors.immutable("spec.cidrs[0]", now[0], was[0])
        _cidrs(errors, now)
    else:
        errors.invalid("spec.cidrs", now, IMMUTABLE)


def _cidrs(errors: FieldErrors, cidrs: tuple[str, ...]) -> None:
    if not cidrs:
        errors.required("spec.cidrs", "at least one CIDR required")
        return
    if len(cidrs) > 2:
        errors.invalid("spec.cidrs", go_struct(CIDRs=cidrs), "may only hold up to 2 values")
        return
    for i, cidr in enumerate(cidrs):
        addresses.canonical_block(errors, f"spec.cidrs[{i}]", cidr)
    if len(cidrs) == 2 and not addresses.one_of_each_family(cidrs):
        errors.invalid(
            "spec.cidrs",
            cidrs,
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        )


def _address_name(name: str) -> tuple[str, ...]:
    errors = FieldErrors()
    addresses.canonical(errors, "", name)
    return tuple(problem.message.partition('": ')[2] for problem in errors)


def address_create(errors: FieldErrors, obj: networking_v1.IPAddress) -> None:
    meta.check(errors, obj.metadata, _address_name, namespaced=False)
    parent = obj.spec.parentRef
    if parent is None:
        errors.required("spec.parentRef")
        return
    if parent.group:
        errors.invalid_each("spec.parentRef.group", parent.group, names.subdomain(parent.group))
    for name in ("resource", "name"):
        value = getattr(parent, name)
        if not value:
            errors.required(f"spec.parentRef.{name}")
        else:
            errors.invalid_each(f"spec.parentRef.{name}", value, names.segment(value))
    if parent.namespace:
        errors.invalid_each("spec.parentRef.namespace", parent.namespace, names.segment(parent.namespace))


def address_update(errors: FieldErrors, new: networking_v1.IPAddress, old: networking_v1.IPAddress) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    errors.immutable("spec.parentRef", new.spec.parentRef, old.spec.parentRef)
