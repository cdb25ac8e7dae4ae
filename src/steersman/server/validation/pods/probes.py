"""Probes and the hooks of a container's life."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import IntOrString
from steersman.server.validation import names
from steersman.server.validation.field_errors import MUST_BE_NONNEGATIVE, FieldErrors

_SCHEMES = ("HTTP", "HTTPS")


def validate_liveness_probe(errors: FieldErrors, path: str, probe: v1.Probe, grace: int | None) -> None:
    """A liveness or a startup probe: one success is enough."""
    _validate_probe(errors, path, probe, grace)
    if probe.successThreshold != 1:
        errors.invalid(f"{path}.successThreshold", probe.successThreshold, "must be 1")


def validate_readiness_probe(errors: FieldErrors, path: str, probe: v1.Probe, grace: int | None) -> None:
    _validate_probe(errors, path, probe, grace)
    own = probe.terminationGracePeriodSeconds
    if own is not None:
        errors.invalid(f"{path}.terminationGracePeriodSeconds", own, "must not be set for readinessProbes")


def _validate_probe(errors: FieldErrors, path: str, probe: v1.Probe, grace: int | None) -> None:
    _validate_handler(errors, path, grace, probe.exec, probe.httpGet, probe.tcpSocket, probe.grpc, None)
    for name in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        number = getattr(probe, name)
        if number < 0:
            errors.invalid(f"{path}.{name}", number, MUST_BE_NONNEGATIVE)
    own = probe.terminationGracePeriodSeconds
    if own is not None and own <= 0:
        errors.invalid(f"{path}.terminationGracePeriodSeconds", own, "must be greater than 0")


def validate_lifecycle(errors: FieldErrors, path: str, hooks: v1.Lifecycle, grace: int | None) -> None:
    for name in ("postStart", "preStop"):
        hook: v1.LifecycleHandler | None = getattr(hooks, name)
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
    """Exactly one way to ask; of several, only the first is looked into."""
    handlers = (("exec", exec_), ("httpGet", http), ("tcpSocket", tcp), ("grpc", grpc), ("sleep", sleep))
    given = [(name, handler) for name, handler in handlers if handler is not None]
    if not given:
        errors.required(path, "must specify a handler type")
        return
    at = f"{path}.{given[0][0]}"
    match given[0][1]:
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
    for name, _ in given[1:]:
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
    """A port by its number or by its name."""
    if isinstance(port, int):
        if not 1 <= port <= 65535:
            errors.invalid_each(path, port, names.port_number(port))
    else:
        errors.invalid_each(path, port, names.port_name(port))
