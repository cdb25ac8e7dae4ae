"""The addresses a service has, and their families."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import addresses
from steersman.server.validation.found import Found

ONCE = "may not change once set"
"""Said of what stays as it was."""

_FAMILIES = ("IPv4", "IPv6")


def is_headless(spec: v1.ServiceSpec) -> bool:
    """Whether a service has no address of its own on purpose."""
    return spec.clusterIPs == ("None",)


def ips(found: Found, spec: v1.ServiceSpec, known: tuple[str, ...]) -> None:
    """The addresses, each of the family that was asked for; those already there may be oddly written."""
    ips, path = spec.clusterIPs, "spec.clusterIPs"
    if spec.clusterIP:
        if not ips:
            found.required(path)
        elif ips[0] != spec.clusterIP:
            found.invalid(path, ips, "first value must match `clusterIP`")
    elif ips:
        found.invalid(path, ips, "must be empty when `clusterIP` is not specified")
    for i, family in enumerate(spec.ipFamilies):
        if family not in _FAMILIES:
            found.unsupported(f"spec.ipFamilies[{i}]", family, _FAMILIES)
        if family in spec.ipFamilies[:i]:
            found.duplicate(f"spec.ipFamilies[{i}]", family)
    sound = True
    for i, ip in enumerate(ips):
        if i == 0 and ip == "None":
            if len(ips) > 1:
                sound = False
                found.invalid(path, ips, "'None' must be the first and only value")
            continue
        sound &= addresses.valid(found, f"{path}[{i}]", ip, known)
    if len(ips) > 2:
        found.invalid(path, ips, "may only hold up to 2 values")
    if not sound or is_headless(spec):
        return
    if len(ips) > 1 and not addresses.one_of_each_family(ips):
        found.invalid(path, ips, "may specify no more than one IP for each IP family")
    for i, (ip, family) in enumerate(zip(ips, spec.ipFamilies, strict=False)):
        if family in _FAMILIES and addresses.is_ipv6(ip) != (family == "IPv6"):
            expected = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
            found.invalid(f"{path}[{i}]", ip, expected)


def ips_kept(found: Found, new: v1.ServiceSpec, old: v1.ServiceSpec) -> None:
    """A service keeps its first address; a second one comes and goes."""
    if "ExternalName" in (new.type, old.type) or (is_headless(new) and is_headless(old)):
        return
    now, was = new.clusterIPs, old.clusterIPs
    first = "spec.clusterIPs[0]"
    if len(now) == len(was):
        for i, (after, before) in enumerate(zip(now, was, strict=True)):
            if after != before:
                found.invalid(f"spec.clusterIPs[{i}]", now, ONCE)
    elif len(now) < len(was):
        if not now:
            found.invalid(first, now or None, "primary clusterIP can not be unset")
        elif now[0] != was[0]:
            found.invalid(first, now, ONCE)
        if len(now) == 1 and new.ipFamilyPolicy != "SingleStack":
            needs = "must be set to 'SingleStack' when releasing the secondary clusterIP"
            found.invalid("spec.ipFamilyPolicy", new.ipFamilyPolicy, needs)
    elif was and now[0] != was[0]:
        found.invalid(first, now, ONCE)


def families_kept(found: Found, new: v1.ServiceSpec, old: v1.ServiceSpec) -> None:
    """The family of the first address is kept; a second one comes and goes."""
    if "ExternalName" in (new.type, old.type) or is_headless(new) or is_headless(old):
        return
    now, was = new.ipFamilies, old.ipFamilies
    first = "spec.ipFamilies[0]"
    if len(now) == len(was):
        for after, before in zip(now, was, strict=True):
            if after != before:
                found.invalid(first, now, ONCE)
    elif len(now) < len(was):
        if not new.clusterIPs:
            found.invalid(first, now or None, "primary ipFamily can not be unset")
        if now and now[0] != was[0]:
            found.invalid(first, new.clusterIPs, ONCE)
        if len(now) == 1 and new.ipFamilyPolicy != "SingleStack":
            needs = "must be set to 'SingleStack' when releasing the secondary ipFamily"
            found.invalid("spec.ipFamilyPolicy", new.ipFamilyPolicy, needs)
    elif was and now[0] != was[0]:
        found.invalid(first, new.clusterIPs, ONCE)
