"""The IP families of a Service: its family policy, and the families it gets of those that the cluster has.

As upstream's allocator decides them. A cluster has the families of its own ServiceCIDR, ``kubernetes``; other ServiceCIDRs add addresses, but no family.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.api.generated.core_v1 import ServiceSpec
from steersman.server.admission.plugin import Listers
from steersman.server.admission.service_ip_addresses import SERVICECIDRS, family_of
from steersman.server.defaulting.missing_fields import put
from steersman.server.validation import service_addresses
from steersman.server.validation.field_errors import FieldErrors

NONE = "None"
"""The cluster IP of a headless Service."""
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"
OTHER = {"IPv4": "IPv6", "IPv6": "IPv4"}
DEFAULT_SERVICECIDR = "kubernetes"


def cluster_families(listers: Listers, default: str) -> tuple[str, ...]:
    """The IP families of the cluster, the default one first; those of the default range without a ServiceCIDR of its own."""
    own = listers.get(SERVICECIDRS, "", DEFAULT_SERVICECIDR)
    texts = own.spec.cidrs if own is not None else default.split(",")
    return tuple(dict.fromkeys(map(family_of, texts)))


def set_families(
    spec: ServiceSpec, old: ServiceSpec | None, configured: Sequence[str]
) -> tuple[ServiceSpec, FieldErrors]:
    """The spec of a Service with its families and family policy, and what is wrong with those that it asks for."""
    if spec.type == "ExternalName":
        return spec, FieldErrors()
    if spec.clusterIP and not spec.clusterIPs:
        spec = put(spec, clusterIPs=(spec.clusterIP,))
    if old is not None and _keeps_preference(spec, old):
        return spec, FieldErrors()
    headless_without_selector = spec.clusterIP == NONE and not spec.selector
    if spec.ipFamilyPolicy is None:
        policy = old.ipFamilyPolicy if old is not None else None
        spec = put(spec, ipFamilyPolicy=policy or (REQUIRE if headless_without_selector else SINGLE))
    errors = FieldErrors()
    service_addresses.validate_cluster_ip_fields(errors, spec, old.clusterIPs if old is not None else ())
    if errors:
        return spec, errors
    if old is not None and spec.ipFamilyPolicy == SINGLE:
        spec = _single(spec, old)
    service_addresses.validate_family_policy(errors, spec, old)
    spec = _infer(spec, configured, errors)
    if errors:
        return spec, errors
    if headless_without_selector:
        families = spec.ipFamilies or (configured[0],)
        if len(families) < 2 and spec.ipFamilyPolicy != SINGLE:
            families = (*families, OTHER[families[0]])
        return put(spec, ipFamilies=families), errors
    if spec.ipFamilyPolicy == REQUIRE and len(configured) < 2:
        message = "this cluster is not configured for dual-stack services"
        errors.invalid("spec.ipFamilyPolicy", REQUIRE, message)
    for i, family in enumerate(spec.ipFamilies):
        if family not in configured:
            errors.invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
    if errors:
        return spec, errors
    families = spec.ipFamilies or (configured[0],)
    if spec.ipFamilyPolicy != SINGLE and len(families) == 1 and len(configured) == 2:
        families = (*families, OTHER[families[0]])
    return put(spec, ipFamilies=families), errors


def _keeps_preference(spec: ServiceSpec, old: ServiceSpec) -> bool:
    """Whether an update leaves a preference for two families as it is: then the Service keeps those that it has."""
    return (
        spec.type == old.type
        and spec.ipFamilyPolicy == PREFER
        and old.ipFamilyPolicy in (None, PREFER)
        and spec.clusterIPs == old.clusterIPs
        and spec.ipFamilies == old.ipFamilies
    )


def _single(spec: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """The spec without the second address and family of the old one, where only the policy was changed."""
    if spec.clusterIPs == old.clusterIPs and len(spec.clusterIPs) > 1:
        spec = put(spec, clusterIPs=spec.clusterIPs[:1])
    if spec.ipFamilies == old.ipFamilies and len(spec.ipFamilies) > 1:
        spec = put(spec, ipFamilies=spec.ipFamilies[:1])
    return spec


def _infer(spec: ServiceSpec, configured: Sequence[str], errors: FieldErrors) -> ServiceSpec:
    """The spec with the families of its cluster IPs, where it does not name them."""
    families = list(spec.ipFamilies)
    for i, ip in enumerate(spec.clusterIPs):
        if ip == NONE or i < len(spec.ipFamilies):
            continue
        family = family_of(ip)
        if family in configured:
            families.append(family)
        else:
            message = f"{family} is not configured on this cluster"
            errors.invalid(f"spec.clusterIPs[{i}]", spec.clusterIPs, message)
    return put(spec, ipFamilies=tuple(families)) if families else spec
