"""The spec that pods and the templates they are made from have in common."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.defaulting.pods import aggregate_resources
from steersman.server.validation import addresses, names, resources
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, go_struct
from steersman.server.validation.pods import containers, environment, scheduling, security, volumes
from steersman.server.validation.pods.annotations import (
    MIRROR,
    validate_pod_annotations,
    validate_profiles_match,
)

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_DEADLINE_RANGE = names.inclusive_range(1, 2**31 - 1)


def validate_pod_template_spec(errors: FieldErrors, path: str, given: v1.PodTemplateSpec) -> None:
    """The template of a workload."""
    metadata = given.metadata
    if metadata.labels:
        meta.validate_labels(errors, f"{path}.labels", metadata.labels)
    if metadata.annotations:
        meta.validate_annotations(errors, f"{path}.annotations", metadata.annotations)
        validate_pod_annotations(errors, f"{path}.annotations", metadata.annotations, given.spec)
    validate_pod_spec(errors, f"{path}.spec", given.spec, None)
    if metadata.annotations:
        validate_profiles_match(errors, f"{path}.spec", metadata.annotations, given.spec)
    if given.spec.ephemeralContainers:
        errors.forbidden(
            f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"
        )


def validate_pod_spec(errors: FieldErrors, path: str, given: v1.PodSpec, metadata: ObjectMeta | None) -> None:
    """A pod's spec, or with no metadata a template's."""
    if given.terminationGracePeriodSeconds is None:
        errors.required(f"{path}.terminationGracePeriodSeconds")
    sound: Mapping[str, v1.Volume] = {}
    if given.volumes:
        sound = volumes.validate_volumes(errors, f"{path}.volumes", given.volumes, metadata)
    if given.resourceClaims:
        _validate_resource_claims(errors, f"{path}.resourceClaims", given.resourceClaims, metadata)
    around = containers.ContainerContext(given, sound)
    containers.validate_containers(errors, f"{path}.containers", around)
    if given.initContainers:
        containers.validate_init_containers(errors, f"{path}.initContainers", around)
    if given.ephemeralContainers:
        containers.validate_ephemeral_containers(errors, f"{path}.ephemeralContainers", around)
    if given.resources is not None:
        _validate_pod_resources(errors, f"{path}.resources", given, given.resources)
    if given.hostNetwork:
        _validate_host_network(errors, f"{path}.containers", given, is_pod=metadata is not None)
    if given.restartPolicy not in _RESTART_POLICIES:
        errors.enum(f"{path}.restartPolicy", given.restartPolicy, _RESTART_POLICIES)
    if given.dnsPolicy not in _DNS_POLICIES:
        errors.enum(f"{path}.dnsPolicy", given.dnsPolicy, _DNS_POLICIES)
    if given.nodeSelector:
        meta.validate_labels(errors, f"{path}.nodeSelector", given.nodeSelector)
    if given.securityContext is not None and given.securityContext != _NO_CONTEXT:
        security.validate_pod_security_context(
            errors, f"{path}.securityContext", given.securityContext, given
        )
    if given.affinity is not None:
        scheduling.validate_affinity(errors, f"{path}.affinity", given.affinity)
    if given.dnsConfig is not None or given.dnsPolicy == "None":
        _validate_dns_config(errors, f"{path}.dnsConfig", given.dnsConfig, given.dnsPolicy)
    if given.readinessGates or given.schedulingGates:
        _validate_gates(errors, path, given)
    if given.topologySpreadConstraints:
        scheduling.validate_topology_spread(
            errors, f"{path}.topologySpreadConstraints", given.topologySpreadConstraints
        )
    if given.hostUsers is False:
        security.validate_host_users(errors, path, given)
    if given.hostnameOverride is not None:
        _validate_hostname_override(errors, path, given, given.hostnameOverride)
    _validate_names(errors, path, given)
    _validate_remaining_fields(errors, path, given)


_NO_CONTEXT = v1.PodSecurityContext()


def _validate_names(errors: FieldErrors, path: str, given: v1.PodSpec) -> None:
    """What a pod refers to by name, and how long it may run."""
    if given.serviceAccountName:
        at = f"{path}.serviceAccountName"
        errors.invalid_each(at, given.serviceAccountName, names.dns1123_subdomain(given.serviceAccountName))
    if given.nodeName:
        errors.invalid_each(f"{path}.nodeName", given.nodeName, names.dns1123_subdomain(given.nodeName))
    deadline = given.activeDeadlineSeconds
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        errors.invalid(f"{path}.activeDeadlineSeconds", deadline, _DEADLINE_RANGE)
    if given.hostname:
        errors.invalid_each(f"{path}.hostname", given.hostname, names.dns1123_label(given.hostname))
    if given.subdomain:
        errors.invalid_each(f"{path}.subdomain", given.subdomain, names.dns1123_label(given.subdomain))


def _validate_remaining_fields(errors: FieldErrors, path: str, given: v1.PodSpec) -> None:
    if given.tolerations:
        scheduling.validate_tolerations(errors, f"{path}.tolerations", given.tolerations)
    for i, alias in enumerate(given.hostAliases):
        at = f"{path}.hostAliases[{i}]"
        addresses.validate_ip(errors, f"{at}.ip", alias.ip)
        for j, name in enumerate(alias.hostnames):
            errors.invalid_each(f"{at}.hostnames[{j}]", name, names.dns1123_subdomain(name))
    if given.priorityClassName:
        at = f"{path}.priorityClassName"
        errors.invalid_each(at, given.priorityClassName, names.dns1123_subdomain(given.priorityClassName))
    if given.runtimeClassName is not None:
        at = f"{path}.runtimeClassName"
        errors.invalid_each(at, given.runtimeClassName, names.dns1123_subdomain(given.runtimeClassName))
    if given.preemptionPolicy is not None:
        errors.enum(f"{path}.preemptionPolicy", given.preemptionPolicy, PREEMPTION_POLICIES)
    if given.overhead:
        resources.validate_resource_requirements(errors, f"{path}.overhead", given.overhead, {})
    if given.os is not None:
        security.validate_os(errors, path, given, given.os)
    environment.validate_file_key_volumes(
        errors, f"{path}.initContainers", given.initContainers, given.volumes
    )
    environment.validate_file_key_volumes(errors, f"{path}.containers", given.containers, given.volumes)


def _validate_gates(errors: FieldErrors, path: str, given: v1.PodSpec) -> None:
    for i, ready in enumerate(given.readinessGates):
        at = f"{path}.readinessGates[{i}].conditionType"
        errors.invalid_each(at, ready.conditionType, names.qualified_name(ready.conditionType))
    seen: list[str] = []
    for i, gate in enumerate(given.schedulingGates):
        at = f"{path}.schedulingGates[{i}]"
        errors.invalid_each(at, gate.name, names.qualified_name(gate.name))
        if gate.name in seen:
            errors.duplicate(at, gate.name)
        seen.append(gate.name)


def _validate_hostname_override(errors: FieldErrors, path: str, given: v1.PodSpec, name: str) -> None:
    at = f"{path}.hostnameOverride"
    if given.setHostnameAsFQDN:
        errors.forbidden(at, "may not be specified when setHostnameAsFQDN is true")
    if given.hostNetwork:
        errors.forbidden(at, "may not be specified when hostNetwork is true")
    if len(name) > 64:
        errors.too_long(at, 64)
    errors.invalid_each(at, name, names.dns1123_subdomain(name))


def _validate_dns_config(errors: FieldErrors, path: str, config: v1.PodDNSConfig | None, policy: str) -> None:
    if policy == "None":
        if config is None:
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.nameservers:
            one = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.required(f"{path}.nameservers", one)
            return
    if config is None:
        return
    if len(config.nameservers) > 3:
        many = "must not have more than 3 nameservers"
        errors.invalid(f"{path}.nameservers", config.nameservers, many)
    for i, server in enumerate(config.nameservers):
        addresses.validate_ip(errors, f"{path}.nameservers[{i}]", server)
    if len(config.searches) > 32:
        errors.invalid(f"{path}.searches", config.searches, "must not have more than 32 search paths")
    if len(" ".join(config.searches)) > 2048:
        long = "must not have more than 2048 characters (including spaces) in the search list"
        errors.invalid(f"{path}.searches", config.searches, long)
    for i, name in enumerate(config.searches):
        if name != ".":
            name = name.removesuffix(".")
            errors.invalid_each(f"{path}.searches[{i}]", name, names.dns_search_domain(name))
    for i, option in enumerate(config.options):
        if not option.name:
            errors.required(f"{path}.options[{i}]", "must not be empty")


def _validate_host_network(errors: FieldErrors, path: str, given: v1.PodSpec, *, is_pod: bool) -> None:
    for i, container in enumerate(given.containers):
        for j, port in enumerate(container.ports):
            if (is_pod or port.hostPort) and port.hostPort != port.containerPort:
                errors.invalid(
                    f"{path}[{i}].ports[{j}].hostPort",
                    port.hostPort,
                    "must match `containerPort` when `hostNetwork` is true",
                )


def _validate_resource_claims(
    errors: FieldErrors, path: str, given: tuple[v1.PodResourceClaim, ...], metadata: ObjectMeta | None
) -> None:
    """Claims of devices."""
    if metadata is not None and MIRROR in metadata.annotations:
        errors.forbidden("[]", "static pods do not support resource claims")
        return
    seen: list[str] = []
    for i, claim in enumerate(given):
        at = f"{path}[{i}]"
        if not claim.name:
            errors.required(f"{at}.name")
        elif claim.name in seen:
            errors.duplicate(f"{at}.name", claim.name)
        else:
            errors.invalid_each(f"{at}.name", claim.name, names.dns1123_label(claim.name))
            seen.append(claim.name)
        name, made = claim.resourceClaimName, claim.resourceClaimTemplateName
        shown = go_struct(Name=claim.name, ResourceClaimName=name, ResourceClaimTemplateName=made)
        if name is not None and made is not None:
            one = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.invalid(at, shown, one)
        if name is None and made is None:
            one = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.invalid(at, shown, one)
        if name is not None:
            errors.invalid_each(f"{at}.resourceClaimName", name, names.dns1123_subdomain(name))
        if made is not None:
            errors.invalid_each(f"{at}.resourceClaimTemplateName", made, names.dns1123_subdomain(made))


def _validate_pod_resources(
    errors: FieldErrors, path: str, spec: v1.PodSpec, given: v1.ResourceRequirements
) -> None:
    """What a pod asks for as a whole."""
    if spec.os is not None and spec.os.name == "windows":
        errors.forbidden(path, "may not be set for a windows pod")
        return
    if given.claims:
        errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    resources.validate_resource_requirements(
        errors, path, given.limits, given.requests, resources.validate_pod_resource_name
    )
    resources.validate_resource_claim_names(errors, f"{path}.claims", given.claims, spec.resourceClaims)
    for name, total in aggregate_resources(spec, lambda container: container.requests).items():
        if name in given.requests and total > resources.parse_quantity(given.requests[name]):
            whole = str(resources.parse_quantity(given.requests[name]))
            least = f"must be greater than or equal to aggregate container requests of {total}"
            errors.invalid(f"{path}.requests[{name}]", whole, least)
    for i, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            if name in given.limits and resources.parse_quantity(limit) > resources.parse_quantity(
                given.limits[name]
            ):
                most = f"must be less than or equal to pod limits of {resources.parse_quantity(given.limits[name])}"
                at = f"{path}.containers[{i}][{name}].limits"
                errors.invalid(at, str(resources.parse_quantity(limit)), most)
