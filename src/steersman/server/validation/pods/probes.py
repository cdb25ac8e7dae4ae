"""Validation of probes and lifecycle hooks."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import IntOrString
from steersman.server.validation import names
from steersman.server.validation.field_errors import MUST_BE_NONNEGATIVE, FieldErrors

_SCHEMES = ("HTTP", "HTTPS")


def validate_liveness_probe(errors: FieldErrors, path: str, probe: v1.Probe, grace: int | None) -> None:
    """Validates a liveness or startup probe, whose successThreshold is one."""
    _validate_probe(errors, path, probe, grace)
    if probe.successThreshold != 1:
        errors.invalid(f"{path}.successThreshold", probe.successThreshold, "must be 1")


def validate_readiness_probe(errors: FieldErrors, path: str, probe: v1.Probe, grace: int | None) -> None:
    _validate_probe(errors, path, probe, grace)
    grace_period = probe.terminationGracePeriodSeconds
    if grace_period is not None:
        errors.invalid(
            f"{path}.terminationGracePeriodSeconds", grace_period, "must not be set for readinessProbes"
        )


def _validate_probe(errors: FieldErrors, path: str, probe: v1.Probe, grace: int | None) -> None:
    _validate_handler(errors, path, grace, probe.exec, probe.httpGet, probe.tcpSocket, probe.grpc, None)
    for name, number in (
        ("initialDelaySeconds", probe.initialDelaySeconds),
        ("timeoutSeconds", probe.timeoutSeconds),
        ("periodSeconds", probe.periodSeconds),
        ("successThreshold", probe.successThreshold),
        ("failureThreshold", probe.failureThreshold),
    ):
        if number < 0:
            errors.invalid(f"{path}.{name}", number, MUST_BE_NONNEGATIVE)
    grace_period = probe.terminationGracePeriodSeconds
    if grace_period is not None and grace_period <= 0:
        errors.invalid(f"{path}.terminationGracePeriodSeconds", grace_period, "must be greater than 0")


def validate_lifecycle(errors: FieldErrors, path: str, hooks: v1.Lifecycle, grace: int | None) -> None:
    hook: v1.LifecycleHandler | None
    for name, hook in (("postStart", hooks.postStart), ("preStop", hooks.preStop)):
        if hook is not None:
            at = f"{path}.{name}"
            _validate_handler(errors, at, grace, hook.exec, hook.httpGet, hook.tcpSocket, None, hook.sleep)


def _validate_handler(
    errors: FieldErrors,
    path: str,
    grace: int | None,
    exec_: v1.ExecAction | None,
    http: v1.HTTPGetAction | None,
    tcp: v1.TCPSocketAction | None,
    grpc: v1.GRPCAction | None,
    sleep: v1.SleepAction | None,
) -> None:
    """Validates that there is exactly one handler; of several only the first is validated."""
    handlers = (("exec", exec_), ("httpGet", http), ("tcpSocket", tcp), ("grpc", grpc), ("sleep", sleep))
    specified = [(name, handler) for name, handler in handlers if handler is not None]
    if not specified:
        errors.required(path, "must specify a handler type")
        return
    at = f"{path}.{specified[0][0]}"
    match specified[0][1]:
        case v1.ExecAction(command=command):
            if not command:
                errors.required(f"{at}.command")
        case v1.HTTPGetAction() as action:
            _validate_http_get(errors, at, action)
        case v1.TCPSocketAction(port=port):
            validate_port_or_name(errors, f"{at}.port", port)
        case v1.GRPCAction(port=number):
            validate_port_or_name(errors, f"{at}.port", number)
        case v1.SleepAction(seconds=seconds):
            if grace is not None and not 0 <= seconds <= grace:
                within = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                errors.invalid(at, seconds, within)
    for name, _ in specified[1:]:
        errors.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _validate_http_get(errors: FieldErrors, path: str, action: v1.HTTPGetAction) -> None:
    if not action.path:
        errors.required(f"{path}.path")
    validate_port_or_name(errors, f"{path}.port", action.port)
    if action.scheme not in _SCHEMES:
        errors.not_supported(f"{path}.scheme", action.scheme, _SCHEMES)
    for header in action.httpHeaders:
        errors.invalid_each(f"{path}.httpHeaders", header.name, names.http_header(header.name))


def validate_port_or_name(errors: FieldErrors, path: str, port: IntOrString) -> None:
    """Validates a port, given as a number or a name."""
    if isinstance(port, int):
        if not 1 <= port <= 65535:
            errors.invalid_each(path, port, names.port_number(port))
    else:
        errors.invalid_each(path, port, names.port_name(port))
