"""Containers of all three sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import names as text
from steersman.server.validation import resources as amounts
from steersman.server.validation.field_errors import Found
from steersman.server.validation.pods import environment, mounts, probes, security

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_RESTART_OPERATORS = ("In", "NotIn")
_RESIZED = ("cpu", "memory")
_RESIZES = ("NotRequired", "RestartContainer")
_NO_PROBES = "may not be set for init containers without restartPolicy=Always"
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


class Around(NamedTuple):
    """What a container's fields depend on outside of it."""

    spec: v1.PodSpec
    volumes: mounts.Volumes
    """The sound ones."""

    @property
    def grace(self) -> int | None:
        return self.spec.terminationGracePeriodSeconds

    @property
    def host_users(self) -> bool:
        return self.spec.hostUsers is not False


def regular(found: Found, path: str, around: Around) -> None:
    """The containers proper; there is at least one."""
    containers = around.spec.containers
    if not containers:
        found.required(path)
        return
    names: set[str] = set()
    for i, container in enumerate(containers):
        at = f"{path}[{i}]"
        _container(found, at, container, around)
        if container.name in names:
            found.duplicate(f"{at}.name", container.name)
        names.add(container.name)
        if container.lifecycle is not None:
            probes.lifecycle(found, f"{at}.lifecycle", container.lifecycle, around.grace)
        _probes(found, at, container, around.grace)
        if container.restartPolicy is not None or container.restartPolicyRules:
            _restart(found, at, container)
    _host_ports(found, path, containers)


def initial(found: Found, path: str, around: Around) -> None:
    """Init containers; those that always restart are sidecars and may do what others may."""
    names = {container.name for container in around.spec.containers}
    for i, container in enumerate(around.spec.initContainers):
        at = f"{path}[{i}]"
        _container(found, at, container, around)
        if container.restartPolicy is not None:
            _restart(found, at, container)
        elif container.restartPolicyRules:
            found.required(f"{at}.restartPolicy", "must specify restartPolicy when restart rules are used")
        if container.name in names:
            found.duplicate(f"{at}.name", container.name)
        elif container.name:
            names.add(container.name)
        _host_ports(found, path, (container,))
        if container.restartPolicy == "Always":
            if container.lifecycle is not None:
                probes.lifecycle(found, f"{at}.lifecycle", container.lifecycle, around.grace)
            _probes(found, at, container, around.grace)
        else:
            for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if getattr(container, name) is not None:
                    found.forbidden(f"{at}.{name}", _NO_PROBES)
            for j, policy in enumerate(container.resizePolicy):
                if policy.restartPolicy == "RestartContainer":
                    found.invalid(
                        f"{at}.resizePolicy[{j}].restartPolicy",
                        policy.restartPolicy,
                        "must not be set to 'RestartContainer' for non-sidecar initContainers",
                    )


def ephemeral(found: Found, path: str, around: Around) -> None:
    """Containers that were added to look into a running pod."""
    spec = around.spec
    others = {container.name for container in (*spec.containers, *spec.initContainers)}
    names = set(others)
    for i, container in enumerate(spec.ephemeralContainers):
        at = f"{path}[{i}]"
        _container(found, at, container, around)
        padded(found, at, container.image)
        if container.name in names:
            found.duplicate(f"{at}.name", container.name)
        names.add(container.name)
        target = container.targetContainerName
        if target and target not in others:
            found.missing(f"{at}.targetContainerName", target)
        for name in _FORBIDDEN_EPHEMERAL:
            if _is_set(getattr(container, name)):
                found.forbidden(f"{at}.{name}", _NOT_EPHEMERAL)
        for j, mount in enumerate(container.volumeMounts):
            for name in ("subPath", "subPathExpr"):
                if getattr(mount, name):
                    found.forbidden(f"{at}.volumeMounts[{j}].{name}", _NOT_EPHEMERAL)


def _is_set(value: Any) -> bool:
    return value not in (None, (), v1.ResourceRequirements())


def padded(found: Found, path: str, image: str) -> None:
    if image != image.strip():
        found.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


# -- what all have in common ------------------------------------------------------------------


def _container(found: Found, path: str, container: Any, around: Around) -> None:
    name = container.name
    if not name:
        found.required(f"{path}.name")
    else:
        for why in text.label(name):
            found.invalid(f"{path}.name", name, why)
    if not container.image:
        found.required(f"{path}.image")
    policy = container.terminationMessagePolicy
    if policy not in _MESSAGE_POLICIES:
        found.choose(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    if container.ports:
        _ports(found, f"{path}.ports", container.ports)
    if container.env:
        environment.variables(found, f"{path}.env", container.env)
    if container.envFrom:
        environment.sources(found, f"{path}.envFrom", container.envFrom)
    if container.volumeMounts:
        mounts.mounts(found, f"{path}.volumeMounts", container, around.volumes)
    if container.volumeDevices:
        mounts.devices(found, f"{path}.volumeDevices", container, around.volumes)
    if container.imagePullPolicy not in PULL_POLICIES:
        found.choose(f"{path}.imagePullPolicy", container.imagePullPolicy, PULL_POLICIES)
    resources = container.resources
    if resources.limits or resources.requests:
        amounts.requirements(found, f"{path}.resources", resources.limits, resources.requests)
    if resources.claims:
        amounts.claims(found, f"{path}.resources.claims", resources.claims, around.spec.resourceClaims)
    if container.resizePolicy:
        _resizes(found, f"{path}.resizePolicy", container.resizePolicy, around.spec.restartPolicy)
    if container.securityContext is not None:
        security.container(
            found, f"{path}.securityContext", container.securityContext, host_users=around.host_users
        )


def _ports(found: Found, path: str, ports: tuple[v1.ContainerPort, ...]) -> None:
    names: list[str] = []
    for i, port in enumerate(ports):
        if port.name:
            if errors := text.port_name(port.name):
                found.each(f"{path}[{i}].name", port.name, errors)
            elif port.name in names:
                found.duplicate(f"{path}[{i}].name", port.name)
            else:
                names.append(port.name)
        if not port.containerPort:
            found.required(f"{path}[{i}].containerPort")
        elif not 1 <= port.containerPort <= 65535:
            found.each(f"{path}[{i}].containerPort", port.containerPort, text.port(port.containerPort))
        if port.hostPort and not 1 <= port.hostPort <= 65535:
            found.each(f"{path}[{i}].hostPort", port.hostPort, text.port(port.hostPort))
        if port.protocol not in PROTOCOLS:
            found.choose(f"{path}[{i}].protocol", port.protocol, PROTOCOLS)


def _host_ports(found: Found, path: str, containers: Sequence[v1.Container]) -> None:
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.ports):
            if not port.hostPort:
                continue
            key = f"{port.protocol}/{port.hostIP}/{port.hostPort}"
            if key in taken:
                found.duplicate(f"{path}[{i}].ports[{j}].hostPort", key)
            taken.add(key)


def _probes(found: Found, path: str, container: v1.Container, grace: int | None) -> None:
    if container.livenessProbe is not None:
        probes.liveness(found, f"{path}.livenessProbe", container.livenessProbe, grace)
    if container.readinessProbe is not None:
        probes.readiness(found, f"{path}.readinessProbe", container.readinessProbe, grace)
    if container.startupProbe is not None:
        probes.liveness(found, f"{path}.startupProbe", container.startupProbe, grace)


def _resizes(
    found: Found, path: str, policies: tuple[v1.ContainerResizePolicy, ...], restart_policy: str
) -> None:
    seen: list[str] = []
    for i, policy in enumerate(policies):
        if policy.resourceName in seen:
            found.duplicate(f"{path}[{i}]", policy.resourceName)
        seen.append(policy.resourceName)
        found.choose(path, policy.resourceName, _RESIZED)
        found.choose(path, policy.restartPolicy, _RESIZES)
        if restart_policy == "Never" and policy.restartPolicy != "NotRequired":
            never = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.invalid(path, policy.restartPolicy, never)


def _restart(found: Found, path: str, container: v1.Container) -> None:
    """A container's own idea of restarting, with rules by exit codes."""
    policy, rules = container.restartPolicy, container.restartPolicyRules
    if policy is None:
        found.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART_POLICIES:
        found.unsupported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        found.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for i, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{i}]"
        if rule.action not in _RESTART_ACTIONS:
            found.unsupported(f"{at}.action", rule.action, _RESTART_ACTIONS)
        codes = rule.exitCodes
        if codes is None:
            found.required(f"{at}.exitCodes", "must be specified")
            continue
        if codes.operator not in _RESTART_OPERATORS:
            found.unsupported(f"{at}.exitCodes.operator", codes.operator, _RESTART_OPERATORS)
        if len(codes.values) > 255:
            found.too_many(f"{at}.exitCodes.values", len(codes.values), 255)
