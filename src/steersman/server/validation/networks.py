"""Who may talk to whom: NetworkPolicies; and the blocks of addresses services are given from."""

from __future__ import annotations

from steersman.api.generated import networking_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import Found, fields
from steersman.server.validation.selectors import label_selector

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


def create(found: Found, policy: networking_v1.NetworkPolicy) -> None:
    meta.check(found, policy.metadata)
    _spec(found, policy.spec)


def update(found: Found, new: networking_v1.NetworkPolicy, old: networking_v1.NetworkPolicy) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _spec(found, new.spec)


def _spec(found: Found, spec: networking_v1.NetworkPolicySpec) -> None:
    label_selector(found, "spec.podSelector", spec.podSelector)
    for i, ingress in enumerate(spec.ingress):
        _ports(found, f"spec.ingress[{i}].ports", ingress.ports)
        _peers(found, f"spec.ingress[{i}].from", ingress.from_)
    for i, egress in enumerate(spec.egress):
        _ports(found, f"spec.egress[{i}].ports", egress.ports)
        _peers(found, f"spec.egress[{i}].to", egress.to)
    types = spec.policyTypes
    if len(types) > len(_TYPES):
        found.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for i, type_ in enumerate(types):
        if type_ not in _TYPES:
            found.unsupported(f"spec.policyTypes[{i}]", type_, _TYPES)


def _ports(found: Found, path: str, ports: tuple[networking_v1.NetworkPolicyPort, ...]) -> None:
    for i, port in enumerate(ports):
        at, number, end = f"{path}[{i}]", port.port, port.endPort
        if port.protocol is not None and port.protocol not in _PROTOCOLS:
            found.unsupported(f"{at}.protocol", port.protocol, _PROTOCOLS)
        if number is None:
            if end is not None:
                without = "may not be specified when `port` is not specified"
                found.invalid(f"{at}.endPort", end, without)
        elif isinstance(number, int):
            found.each(f"{at}.port", number, names.port(number))
            if end is not None:
                if end < number:
                    found.invalid(f"{at}.endPort", number, "must be greater than or equal to `port`")
                found.each(f"{at}.endPort", end, names.port(end))
        else:
            if end is not None:
                named = "may not be specified when `port` is non-numeric"
                found.invalid(f"{at}.endPort", end, named)
            found.each(f"{at}.port", number, names.port_name(number))


def _peers(found: Found, path: str, peers: tuple[networking_v1.NetworkPolicyPeer, ...]) -> None:
    for i, peer in enumerate(peers):
        at = f"{path}[{i}]"
        label_selector(found, f"{at}.podSelector", peer.podSelector)
        label_selector(found, f"{at}.namespaceSelector", peer.namespaceSelector)
        others = peer.podSelector is not None or peer.namespaceSelector is not None
        if peer.ipBlock is not None:
            _block(found, f"{at}.ipBlock", peer.ipBlock)
            if others:
                found.forbidden(at, "may not specify both ipBlock and another peer")
        elif not others:
            found.required(at, "must specify a peer")


def _block(found: Found, path: str, block: networking_v1.IPBlock) -> None:
    if not block.cidr:
        found.required(f"{path}.cidr")
        return
    addresses.valid_block(found, f"{path}.cidr", block.cidr)
    whole = addresses.parse_block(block.cidr)
    if whole is None:
        return
    for i, hole in enumerate(block.except_):
        at = f"{path}.except[{i}]"
        addresses.valid_block(found, at, hole)
        part = addresses.parse_block(hole)
        if part is None:
            continue
        inside = part.version == whole.version and part.network_address in whole
        if not inside or part.prefixlen <= whole.prefixlen:
            found.invalid(at, hole, "must be a strict subset of `cidr`")


# -- ServiceCIDRs and IPAddresses -------------------------------------------------------------


def cidr_create(found: Found, obj: networking_v1.ServiceCIDR) -> None:
    meta.check(found, obj.metadata, namespaced=False)
    _cidrs(found, obj.spec.cidrs)


def cidr_update(found: Found, new: networking_v1.ServiceCIDR, old: networking_v1.ServiceCIDR) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    now, was = new.spec.cidrs, old.spec.cidrs
    if len(now) == len(was):
        for i, (after, before) in enumerate(zip(now, was, strict=True)):
            found.changed(f"spec.cidrs[{i}]", after, before)
    elif len(was) == 1 and len(now) == 2:
        found.changed("spec.cidrs[0]", now[0], was[0])
        _cidrs(found, now)
    else:
        found.invalid("spec.cidrs", now, IMMUTABLE)


def _cidrs(found: Found, cidrs: tuple[str, ...]) -> None:
    if not cidrs:
        found.required("spec.cidrs", "at least one CIDR required")
        return
    if len(cidrs) > 2:
        found.invalid("spec.cidrs", fields(CIDRs=cidrs), "may only hold up to 2 values")
        return
    for i, cidr in enumerate(cidrs):
        addresses.canonical_block(found, f"spec.cidrs[{i}]", cidr)
    if len(cidrs) == 2 and not addresses.one_of_each_family(cidrs):
        found.invalid(
            "spec.cidrs",
            cidrs,
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        )


def _address_name(name: str) -> tuple[str, ...]:
    found = Found()
    addresses.canonical(found, "", name)
    return tuple(problem.says.partition('": ')[2] for problem in found)


def address_create(found: Found, obj: networking_v1.IPAddress) -> None:
    meta.check(found, obj.metadata, _address_name, namespaced=False)
    parent = obj.spec.parentRef
    if parent is None:
        found.required("spec.parentRef")
        return
    if parent.group:
        found.each("spec.parentRef.group", parent.group, names.subdomain(parent.group))
    for name in ("resource", "name"):
        value = getattr(parent, name)
        if not value:
            found.required(f"spec.parentRef.{name}")
        else:
            found.each(f"spec.parentRef.{name}", value, names.segment(value))
    if parent.namespace:
        found.each("spec.parentRef.namespace", parent.namespace, names.segment(parent.namespace))


def address_update(found: Found, new: networking_v1.IPAddress, old: networking_v1.IPAddress) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    found.changed("spec.parentRef", new.spec.parentRef, old.spec.parentRef)
