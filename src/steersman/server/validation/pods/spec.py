"""Validation of the pod spec, which pods and pod templates share."""

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


def validate_pod_template_spec(errors: FieldErrors, path: str, template: v1.PodTemplateSpec) -> None:
    """Validates the pod template of a workload."""
    metadata = template.metadata
    if metadata.labels:
        meta.validate_labels(errors, f"{path}.labels", metadata.labels)
    if metadata.annotations:
        meta.validate_annotations(errors, f"{path}.annotations", metadata.annotations)
        validate_pod_annotations(errors, f"{path}.annotations", metadata.annotations, template.spec)
    validate_pod_spec(errors, f"{path}.spec", template.spec, None)
    if metadata.annotations:
        validate_profiles_match(errors, f"{path}.spec", metadata.annotations, template.spec)
    if template.spec.ephemeralContainers:
        errors.forbidden(
            f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"
        )


def validate_pod_spec(errors: FieldErrors, path: str, spec: v1.PodSpec, metadata: ObjectMeta | None) -> None:
    """Validates the spec of a pod; ``metadata`` is None for a template."""
    if spec.terminationGracePeriodSeconds is None:
        errors.required(f"{path}.terminationGracePeriodSeconds")
    valid_volumes: Mapping[str, v1.Volume] = {}
    if spec.volumes:
        valid_volumes = volumes.validate_volumes(errors, f"{path}.volumes", spec.volumes, metadata)
    if spec.resourceClaims:
        _validate_resource_claims(errors, f"{path}.resourceClaims", spec.resourceClaims, metadata)
    context = containers.ContainerContext(spec, valid_volumes)
    containers.validate_containers(errors, f"{path}.containers", context)
    if spec.initContainers:
        containers.validate_init_containers(errors, f"{path}.initContainers", context)
    if spec.ephemeralContainers:
        containers.validate_ephemeral_containers(errors, f"{path}.ephemeralContainers", context)
    if spec.resources is not None:
        _validate_pod_resources(errors, f"{path}.resources", spec, spec.resources)
    if spec.hostNetwork:
        _validate_host_network(errors, f"{path}.containers", spec, is_pod=metadata is not None)
    if spec.restartPolicy not in _RESTART_POLICIES:
        errors.enum(f"{path}.restartPolicy", spec.restartPolicy, _RESTART_POLICIES)
    if spec.dnsPolicy not in _DNS_POLICIES:
        errors.enum(f"{path}.dnsPolicy", spec.dnsPolicy, _DNS_POLICIES)
    if spec.nodeSelector:
        meta.validate_labels(errors, f"{path}.nodeSelector", spec.nodeSelector)
    if spec.securityContext is not None and spec.securityContext != _NO_CONTEXT:
        security.validate_pod_security_context(errors, f"{path}.securityContext", spec.securityContext, spec)
    if spec.affinity is not None:
        scheduling.validate_affinity(errors, f"{path}.affinity", spec.affinity)
    if spec.dnsConfig is not None or spec.dnsPolicy == "None":
        _validate_dns_config(errors, f"{path}.dnsConfig", spec.dnsConfig, spec.dnsPolicy)
    if spec.readinessGates or spec.schedulingGates:
        _validate_gates(errors, path, spec)
    if spec.topologySpreadConstraints:
        scheduling.validate_topology_spread(
            errors, f"{path}.topologySpreadConstraints", spec.topologySpreadConstraints
        )
    if spec.hostUsers is False:
        security.validate_host_users(errors, path, spec)
    if spec.hostnameOverride is not None:
        _validate_hostname_override(errors, path, spec, spec.hostnameOverride)
    _validate_names(errors, path, spec)
    _validate_remaining_fields(errors, path, spec)


_NO_CONTEXT = v1.PodSecurityContext()


def _validate_names(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    """Validates names in the spec, and the deadline."""
    if spec.serviceAccountName:
        at = f"{path}.serviceAccountName"
        errors.invalid_each(at, spec.serviceAccountName, names.dns1123_subdomain(spec.serviceAccountName))
    if spec.nodeName:
        errors.invalid_each(f"{path}.nodeName", spec.nodeName, names.dns1123_subdomain(spec.nodeName))
    deadline = spec.activeDeadlineSeconds
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        errors.invalid(f"{path}.activeDeadlineSeconds", deadline, _DEADLINE_RANGE)
    if spec.hostname:
        errors.invalid_each(f"{path}.hostname", spec.hostname, names.dns1123_label(spec.hostname))
    if spec.subdomain:
        errors.invalid_each(f"{path}.subdomain", spec.subdomain, names.dns1123_label(spec.subdomain))


def _validate_remaining_fields(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    if spec.tolerations:
        scheduling.validate_tolerations(errors, f"{path}.tolerations", spec.tolerations)
    for i, alias in enumerate(spec.hostAliases):
        at = f"{path}.hostAliases[{i}]"
        addresses.validate_ip(errors, f"{at}.ip", alias.ip)
        for j, name in enumerate(alias.hostnames):
            errors.invalid_each(f"{at}.hostnames[{j}]", name, names.dns1123_subdomain(name))
    if spec.priorityClassName:
        at = f"{path}.priorityClassName"
        errors.invalid_each(at, spec.priorityClassName, names.dns1123_subdomain(spec.priorityClassName))
    if spec.runtimeClassName is not None:
        at = f"{path}.runtimeClassName"
        errors.invalid_each(at, spec.runtimeClassName, names.dns1123_subdomain(spec.runtimeClassName))
    if spec.preemptionPolicy is not None:
        errors.enum(f"{path}.preemptionPolicy", spec.preemptionPolicy, PREEMPTION_POLICIES)
    if spec.overhead:
        resources.validate_resource_requirements(errors, f"{path}.overhead", spec.overhead, {})
    if spec.os is not None:
        security.validate_os(errors, path, spec, spec.os)
    environment.validate_file_key_volumes(errors, f"{path}.initContainers", spec.initContainers, spec.volumes)
    environment.validate_file_key_volumes(errors, f"{path}.containers", spec.containers, spec.volumes)


def _validate_gates(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    for i, ready in enumerate(spec.readinessGates):
        at = f"{path}.readinessGates[{i}].conditionType"
        errors.invalid_each(at, ready.conditionType, names.qualified_name(ready.conditionType))
    seen: list[str] = []
    for i, gate in enumerate(spec.schedulingGates):
        at = f"{path}.schedulingGates[{i}]"
        errors.invalid_each(at, gate.name, names.qualified_name(gate.name))
        if gate.name in seen:
            errors.duplicate(at, gate.name)
        seen.append(gate.name)


def _validate_hostname_override(errors: FieldErrors, path: str, spec: v1.PodSpec, name: str) -> None:
    at = f"{path}.hostnameOverride"
    if spec.setHostnameAsFQDN:
        errors.forbidden(at, "may not be specified when setHostnameAsFQDN is true")
    if spec.hostNetwork:
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


def _validate_host_network(errors: FieldErrors, path: str, spec: v1.PodSpec, *, is_pod: bool) -> None:
    for i, container in enumerate(spec.containers):
        for j, port in enumerate(container.ports):
            if (is_pod or port.hostPort) and port.hostPort != port.containerPort:
                errors.invalid(
                    f"{path}[{i}].ports[{j}].hostPort",
                    port.hostPort,
                    "must match `containerPort` when `hostNetwork` is true",
                )


def _validate_resource_claims(
    errors: FieldErrors, path: str, claims: tuple[v1.PodResourceClaim, ...], metadata: ObjectMeta | None
) -> None:
    """Validates the pod's resource claims."""
    if metadata is not None and MIRROR in metadata.annotations:
        errors.forbidden("[]", "static pods do not support resource claims")
        return
    seen: list[str] = []
    for i, claim in enumerate(claims):
        at = f"{path}[{i}]"
        if not claim.name:
            errors.required(f"{at}.name")
        elif claim.name in seen:
            errors.duplicate(f"{at}.name", claim.name)
        else:
            errors.invalid_each(f"{at}.name", claim.name, names.dns1123_label(claim.name))
            seen.append(claim.name)
        name, template_name = claim.resourceClaimName, claim.resourceClaimTemplateName
        shown = go_struct(Name=claim.name, ResourceClaimName=name, ResourceClaimTemplateName=template_name)
        if name is not None and template_name is not None:
            one = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.invalid(at, shown, one)
        if name is None and template_name is None:
            one = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.invalid(at, shown, one)
        if name is not None:
            errors.invalid_each(f"{at}.resourceClaimName", name, names.dns1123_subdomain(name))
        if template_name is not None:
            errors.invalid_each(
                f"{at}.resourceClaimTemplateName", template_name, names.dns1123_subdomain(template_name)
            )


def _validate_pod_resources(
    errors: FieldErrors, path: str, spec: v1.PodSpec, requirements: v1.ResourceRequirements
) -> None:
    """Validates pod-level resources."""
    if spec.os is not None and spec.os.name == "windows":
        errors.forbidden(path, "may not be set for a windows pod")
        return
    if requirements.claims:
        errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    resources.validate_resource_requirements(
        errors, path, requirements.limits, requirements.requests, resources.validate_pod_resource_name
    )
    resources.validate_resource_claim_names(
        errors, f"{path}.claims", requirements.claims, spec.resourceClaims
    )
    for name, total in aggregate_resources(spec, lambda container: container.requests).items():
        if name in requirements.requests and total > resources.parse_quantity(requirements.requests[name]):
            pod_request = str(resources.parse_quantity(requirements.requests[name]))
            least = f"must be greater than or equal to aggregate container requests of {total}"
            errors.invalid(f"{path}.requests[{name}]", pod_request, least)
    for i, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            if name in requirements.limits and resources.parse_quantity(limit) > resources.parse_quantity(
                requirements.limits[name]
            ):
                most = f"must be less than or equal to pod limits of {resources.parse_quantity(requirements.limits[name])}"
                at = f"{path}.containers[{i}][{name}].limits"
                errors.invalid(at, str(resources.parse_quantity(limit)), most)
