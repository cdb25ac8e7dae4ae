"""Validation of containers, init containers and ephemeral containers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods import environment, mounts, probes, security

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_RESTART_OPERATORS = ("In", "NotIn")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_SIDECAR_ONLY = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_FORBIDDEN_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


class ContainerContext(msgspec.Struct, frozen=True):
    """The parts of a pod that the validation of its containers needs."""

    spec: v1.PodSpec
    volumes: mounts.Volumes
    """The valid volumes of the pod, by name."""

    @property
    def grace(self) -> int | None:
        return self.spec.terminationGracePeriodSeconds

    @property
    def host_users(self) -> bool:
        return self.spec.hostUsers is not False


def validate_containers(errors: FieldErrors, path: str, context: ContainerContext) -> None:
    """Validates the containers, of which there is at least one."""
    containers = context.spec.containers
    if not containers:
        errors.required(path)
        return
    seen: set[str] = set()
    for i, container in enumerate(containers):
        at = f"{path}[{i}]"
        _validate_container(errors, at, container, context)
        if container.name in seen:
            errors.duplicate(f"{at}.name", container.name)
        seen.add(container.name)
        if container.lifecycle is not None:
            probes.validate_lifecycle(errors, f"{at}.lifecycle", container.lifecycle, context.grace)
        _validate_probes(errors, at, container, context.grace)
        if container.restartPolicy is not None or container.restartPolicyRules:
            _validate_restart_policy(errors, at, container)
    _validate_host_ports(errors, path, containers)


def validate_init_containers(errors: FieldErrors, path: str, context: ContainerContext) -> None:
    """Validates the init containers; those with restartPolicy Always are sidecars and may have probes."""
    seen = {container.name for container in context.spec.containers}
    for i, container in enumerate(context.spec.initContainers):
        at = f"{path}[{i}]"
        _validate_container(errors, at, container, context)
        if container.restartPolicy is not None:
            _validate_restart_policy(errors, at, container)
        elif container.restartPolicyRules:
            errors.required(f"{at}.restartPolicy", "must specify restartPolicy when restart rules are used")
        if container.name in seen:
            errors.duplicate(f"{at}.name", container.name)
        elif container.name:
            seen.add(container.name)
        _validate_host_ports(errors, path, (container,))
        if container.restartPolicy == "Always":
            if container.lifecycle is not None:
                probes.validate_lifecycle(errors, f"{at}.lifecycle", container.lifecycle, context.grace)
            _validate_probes(errors, at, container, context.grace)
        else:
            for name, value in (
                ("lifecycle", container.lifecycle),
                ("livenessProbe", container.livenessProbe),
                ("readinessProbe", container.readinessProbe),
                ("startupProbe", container.startupProbe),
            ):
                if value is not None:
                    errors.forbidden(f"{at}.{name}", _SIDECAR_ONLY)
            for j, policy in enumerate(container.resizePolicy):
                if policy.restartPolicy == "RestartContainer":
                    errors.invalid(
                        f"{at}.resizePolicy[{j}].restartPolicy",
                        policy.restartPolicy,
                        "must not be set to 'RestartContainer' for non-sidecar initContainers",
                    )


def validate_ephemeral_containers(errors: FieldErrors, path: str, context: ContainerContext) -> None:
    """Validates the ephemeral containers."""
    spec = context.spec
    others = {container.name for container in (*spec.containers, *spec.initContainers)}
    seen = set(others)
    for i, container in enumerate(spec.ephemeralContainers):
        at = f"{path}[{i}]"
        _validate_container(errors, at, container, context)
        validate_image_whitespace(errors, at, container.image)
        if container.name in seen:
            errors.duplicate(f"{at}.name", container.name)
        seen.add(container.name)
        target = container.targetContainerName
        if target and target not in others:
            errors.not_found(f"{at}.targetContainerName", target)
        for name in _FORBIDDEN_EPHEMERAL:
            if _is_nonzero(getattr(container, name)):
                errors.forbidden(f"{at}.{name}", _NOT_EPHEMERAL)
        for j, mount in enumerate(container.volumeMounts):
            for name, value in (("subPath", mount.subPath), ("subPathExpr", mount.subPathExpr)):
                if value:
                    errors.forbidden(f"{at}.volumeMounts[{j}].{name}", _NOT_EPHEMERAL)


def _is_nonzero(value: object) -> bool:
    return value not in (None, (), v1.ResourceRequirements())


def validate_image_whitespace(errors: FieldErrors, path: str, image: str) -> None:
    if image != image.strip():
        errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


# -- fields all containers share --------------------------------------------------------------


def _validate_container(
    errors: FieldErrors, path: str, container: mounts.AnyContainer, context: ContainerContext
) -> None:
    name = container.name
    if not name:
        errors.required(f"{path}.name")
    else:
        for detail in names.dns1123_label(name):
            errors.invalid(f"{path}.name", name, detail)
    if not container.image:
        errors.required(f"{path}.image")
    policy = container.terminationMessagePolicy
    if policy not in _MESSAGE_POLICIES:
        errors.enum(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    if container.ports:
        _validate_container_ports(errors, f"{path}.ports", container.ports)
    if container.env:
        environment.validate_env(errors, f"{path}.env", container.env)
    if container.envFrom:
        environment.validate_env_from(errors, f"{path}.envFrom", container.envFrom)
    if container.volumeMounts:
        mounts.validate_volume_mounts(errors, f"{path}.volumeMounts", container, context.volumes)
    if container.volumeDevices:
        mounts.validate_volume_devices(errors, f"{path}.volumeDevices", container, context.volumes)
    if container.imagePullPolicy not in PULL_POLICIES:
        errors.enum(f"{path}.imagePullPolicy", container.imagePullPolicy, PULL_POLICIES)
    requirements = container.resources
    if requirements.limits or requirements.requests:
        resources.validate_resource_requirements(
            errors, f"{path}.resources", requirements.limits, requirements.requests
        )
    if requirements.claims:
        resources.validate_resource_claim_names(
            errors, f"{path}.resources.claims", requirements.claims, context.spec.resourceClaims
        )
    if container.resizePolicy:
        _validate_resize_policy(
            errors, f"{path}.resizePolicy", container.resizePolicy, context.spec.restartPolicy
        )
    if container.securityContext is not None:
        security.validate_security_context(
            errors, f"{path}.securityContext", container.securityContext, host_users=context.host_users
        )


def _validate_container_ports(errors: FieldErrors, path: str, ports: tuple[v1.ContainerPort, ...]) -> None:
    seen: list[str] = []
    for i, port in enumerate(ports):
        if port.name:
            if messages := names.port_name(port.name):
                errors.invalid_each(f"{path}[{i}].name", port.name, messages)
            elif port.name in seen:
                errors.duplicate(f"{path}[{i}].name", port.name)
            else:
                seen.append(port.name)
        if not port.containerPort:
            errors.required(f"{path}[{i}].containerPort")
        elif not 1 <= port.containerPort <= 65535:
            errors.invalid_each(
                f"{path}[{i}].containerPort", port.containerPort, names.port_number(port.containerPort)
            )
        if port.hostPort and not 1 <= port.hostPort <= 65535:
            errors.invalid_each(f"{path}[{i}].hostPort", port.hostPort, names.port_number(port.hostPort))
        if port.protocol not in PROTOCOLS:
            errors.enum(f"{path}[{i}].protocol", port.protocol, PROTOCOLS)


def _validate_host_ports(errors: FieldErrors, path: str, containers: Sequence[v1.Container]) -> None:
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.ports):
            if not port.hostPort:
                continue
            key = f"{port.protocol}/{port.hostIP}/{port.hostPort}"
            if key in taken:
                errors.duplicate(f"{path}[{i}].ports[{j}].hostPort", key)
            taken.add(key)


def _validate_probes(errors: FieldErrors, path: str, container: v1.Container, grace: int | None) -> None:
    if container.livenessProbe is not None:
        probes.validate_liveness_probe(errors, f"{path}.livenessProbe", container.livenessProbe, grace)
    if container.readinessProbe is not None:
        probes.validate_readiness_probe(errors, f"{path}.readinessProbe", container.readinessProbe, grace)
    if container.startupProbe is not None:
        probes.validate_liveness_probe(errors, f"{path}.startupProbe", container.startupProbe, grace)


def _validate_resize_policy(
    errors: FieldErrors, path: str, policies: tuple[v1.ContainerResizePolicy, ...], restart_policy: str
) -> None:
    seen: list[str] = []
    for i, policy in enumerate(policies):
        if policy.resourceName in seen:
            errors.duplicate(f"{path}[{i}]", policy.resourceName)
        seen.append(policy.resourceName)
        errors.enum(path, policy.resourceName, _RESIZABLE)
        errors.enum(path, policy.restartPolicy, _RESIZE_POLICIES)
        if restart_policy == "Never" and policy.restartPolicy != "NotRequired":
            never = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.invalid(path, policy.restartPolicy, never)


def _validate_restart_policy(errors: FieldErrors, path: str, container: v1.Container) -> None:
    """Validates a container's own restart policy and its rules by exit code."""
    policy, rules = container.restartPolicy, container.restartPolicyRules
    if policy is None:
        errors.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART_POLICIES:
        errors.not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        errors.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for i, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{i}]"
        if rule.action not in _RESTART_ACTIONS:
            errors.not_supported(f"{at}.action", rule.action, _RESTART_ACTIONS)
        codes = rule.exitCodes
        if codes is None:
            errors.required(f"{at}.exitCodes", "must be specified")
            continue
        if codes.operator not in _RESTART_OPERATORS:
            errors.not_supported(f"{at}.exitCodes.operator", codes.operator, _RESTART_OPERATORS)
        if len(codes.values) > 255:
            errors.too_many(f"{at}.exitCodes.values", len(codes.values), 255)
