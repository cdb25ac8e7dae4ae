"""Validation of a Service's cluster IPs and IP families."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import addresses
from steersman.server.validation.field_errors import FieldErrors

IMMUTABLE_ONCE_SET = "may not change once set"
"""The message for a field that is immutable once set."""

_IP_FAMILIES = ("IPv4", "IPv6")
_IP_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_SINGLE_STACK = "SingleStack"


def is_headless(spec: v1.ServiceSpec) -> bool:
    """Whether a service is headless: its cluster IP is ``None``."""
    return spec.clusterIPs == ("None",)


def validate_requested_ips(errors: FieldErrors, spec: v1.ServiceSpec, old: v1.ServiceSpec | None) -> None:
    """Validates the requested cluster IPs and families, before any are allocated, against the family policy."""
    before = len(errors)
    validate_cluster_ip_fields(errors, spec, () if old is None else old.clusterIPs)
    if len(errors) == before:
        validate_family_policy(errors, spec, old)


def validate_family_policy(errors: FieldErrors, spec: v1.ServiceSpec, old: v1.ServiceSpec | None) -> None:
    """Validates the family policy against the number of cluster IPs and families."""
    path = "spec.ipFamilyPolicy"
    policy = spec.ipFamilyPolicy or (old.ipFamilyPolicy if old is not None else None)
    if policy is None:
        policy = "RequireDualStack" if is_headless(spec) and not spec.selector else _SINGLE_STACK
    if old is not None and policy != _SINGLE_STACK:
        if 0 < len(spec.clusterIPs) < len(old.clusterIPs):
            errors.invalid(path, policy, "must be 'SingleStack' to release the secondary cluster IP")
        if 0 < len(spec.ipFamilies) < len(old.ipFamilies):
            errors.invalid(path, policy, "must be 'SingleStack' to release the secondary IP family")
    if policy == _SINGLE_STACK:
        message = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        # An update that only sets SingleStack releases the secondary IP.
        if len(spec.clusterIPs) == 2 and (old is None or spec.clusterIPs != old.clusterIPs):
            errors.invalid(path, policy, message.format("cluster IPs"))
        if len(spec.ipFamilies) == 2 and (old is None or spec.ipFamilies != old.ipFamilies):
            errors.invalid(path, policy, message.format("IP families"))


def validate_cluster_ip_fields(errors: FieldErrors, spec: v1.ServiceSpec, existing: tuple[str, ...]) -> None:
    """Validates the cluster IPs against the families. ``existing`` IPs may have a legacy form."""
    ips, path = spec.clusterIPs, "spec.clusterIPs"
    if spec.clusterIP:
        if not ips:
            errors.required(path)
        elif ips[0] != spec.clusterIP:
            errors.invalid(path, ips, "first value must match `clusterIP`")
    elif ips:
        errors.invalid(path, ips, "must be empty when `clusterIP` is not specified")
    for i, family in enumerate(spec.ipFamilies):
        if family not in _IP_FAMILIES:
            errors.not_supported(f"spec.ipFamilies[{i}]", family, _IP_FAMILIES)
        if family in spec.ipFamilies[:i]:
            errors.duplicate(f"spec.ipFamilies[{i}]", family)
    if spec.ipFamilyPolicy is not None and spec.ipFamilyPolicy not in _IP_FAMILY_POLICIES:
        errors.not_supported("spec.ipFamilyPolicy", spec.ipFamilyPolicy, _IP_FAMILY_POLICIES)
    valid = True
    for i, ip in enumerate(ips):
        if i == 0 and ip == "None":
            if len(ips) > 1:
                valid = False
                errors.invalid(path, ips, "'None' must be the first and only value")
            continue
        valid &= addresses.validate_ip(errors, f"{path}[{i}]", ip, existing)
    if len(ips) > 2:
        errors.invalid(path, ips, "may only hold up to 2 values")
    if not valid or is_headless(spec):
        return
    if len(ips) > 1 and len({addresses.is_ipv6(ip) for ip in ips}) == 1:
        errors.invalid(path, ips, "may specify no more than one IP for each IP family")
    for i, (ip, family) in enumerate(zip(ips, spec.ipFamilies, strict=False)):
        if family in _IP_FAMILIES and addresses.is_ipv6(ip) != (family == "IPv6"):
            expected = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
            errors.invalid(f"{path}[{i}]", ip, expected)


def validate_cluster_ips_update(errors: FieldErrors, new: v1.ServiceSpec, old: v1.ServiceSpec) -> None:
    """The primary cluster IP is immutable; the secondary one may be added or released."""
    if "ExternalName" in (new.type, old.type) or (is_headless(new) and is_headless(old)):
        return
    now, was = new.clusterIPs, old.clusterIPs
    first = "spec.clusterIPs[0]"
    if len(now) == len(was):
        for i, (after, before) in enumerate(zip(now, was, strict=True)):
            if after != before:
                errors.invalid(f"spec.clusterIPs[{i}]", now, IMMUTABLE_ONCE_SET)
    elif len(now) < len(was):
        if not now:
            errors.invalid(first, now or None, "primary clusterIP can not be unset")
        elif now[0] != was[0]:
            errors.invalid(first, now, IMMUTABLE_ONCE_SET)
        if len(now) == 1 and new.ipFamilyPolicy != _SINGLE_STACK:
            needs = "must be set to 'SingleStack' when releasing the secondary clusterIP"
            errors.invalid("spec.ipFamilyPolicy", new.ipFamilyPolicy, needs)
    elif was and now[0] != was[0]:
        errors.invalid(first, now, IMMUTABLE_ONCE_SET)


def validate_ip_families_update(errors: FieldErrors, new: v1.ServiceSpec, old: v1.ServiceSpec) -> None:
    """The primary IP family is immutable; the secondary one may be added or released."""
    if "ExternalName" in (new.type, old.type) or is_headless(new) or is_headless(old):
        return
    now, was = new.ipFamilies, old.ipFamilies
    first = "spec.ipFamilies[0]"
    if len(now) == len(was):
        for after, before in zip(now, was, strict=True):
            if after != before:
                errors.invalid(first, now, IMMUTABLE_ONCE_SET)
    elif len(now) < len(was):
        if not new.clusterIPs:
            errors.invalid(first, now or None, "primary ipFamily can not be unset")
        if now and now[0] != was[0]:
            errors.invalid(first, new.clusterIPs, IMMUTABLE_ONCE_SET)
        if len(now) == 1 and new.ipFamilyPolicy != _SINGLE_STACK:
            needs = "must be set to 'SingleStack' when releasing the secondary ipFamily"
            errors.invalid("spec.ipFamilyPolicy", new.ipFamilyPolicy, needs)
    elif was and now[0] != was[0]:
        errors.invalid(first, new.clusterIPs, IMMUTABLE_ONCE_SET)
