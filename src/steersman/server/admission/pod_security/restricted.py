"""The checks of the Pod Security Standard ``restricted``, which adds hardening practices to ``baseline``.

One function for each check. It returns the violation, or None.
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.server.admission.pod_security.baseline import (
    app_armor,
    forbidden_seccomp,
    host_namespaces,
    host_ports,
    host_process,
    privileged,
    probe_hosts,
    proc_mount,
    se_linux,
    sysctls,
)
from steersman.server.admission.pod_security.violations import CheckedPod, Violation, distinct, plural, quoted

_VOLUMES = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
]


def _privilege_escalation(pod: CheckedPod) -> Violation:
    names = pod.containers_where(
        lambda context: context is None or context.allowPrivilegeEscalation is not False
    )
    if not names or pod.windows:
        return None
    return (
        "allowPrivilegeEscalation != false",
        f"{plural('container', names)} {quoted(names)} must set securityContext.allowPrivilegeEscalation=false",
    )


def _capabilities(pod: CheckedPod) -> Violation:
    if pod.windows:
        return None
    given = {
        each.name: each.securityContext.capabilities if each.securityContext is not None else None
        for each in pod.containers
    }
    keeping = [name for name, each in given.items() if each is None or "ALL" not in each.drop]
    adding = [
        name
        for name, each in given.items()
        if each is not None and any(added != "NET_BIND_SERVICE" for added in each.add)
    ]
    details = []
    if keeping:
        details.append(
            f'{plural("container", keeping)} {quoted(keeping)} must set securityContext.capabilities.drop=["ALL"]'
        )
    if adding:
        added = distinct(
            name
            for each in given.values()
            if each is not None
            for name in each.add
            if name != "NET_BIND_SERVICE"
        )
        details.append(
            f"{plural('container', adding)} {quoted(adding)} must not include {quoted(added)} "
            "in securityContext.capabilities.add"
        )
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def _volumes(pod: CheckedPod) -> Violation:
    forbidden: list[str] = []
    kinds: list[str] = []
    for volume in pod.spec.volumes:
        existing = [
            name for name in volume.__struct_fields__ if name != "name" and getattr(volume, name) is not None
        ]
        if not any(name in _VOLUMES for name in existing):
            forbidden.append(volume.name)
            kinds.append(existing[0] if existing else "unknown")
    if not forbidden:
        return None
    types = distinct(kinds)
    uses = "uses" if len(forbidden) == 1 else "use"
    return (
        "restricted volume types",
        f"{plural('volume', forbidden)} {quoted(forbidden)} {uses} {plural('restricted volume type', types)} "
        f"{quoted(types)}",
    )


def _run_as_non_root(pod: CheckedPod) -> Violation:
    if pod.has_user_namespace:
        return None
    setters = pod.set_by(lambda context: context.runAsNonRoot is False)
    if setters:
        return (
            "runAsNonRoot != true",
            f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false",
        )
    context = pod.spec.securityContext
    if context is not None and context.runAsNonRoot:
        return None
    names = pod.containers_where(lambda context: context is None or context.runAsNonRoot is None)
    if not names:
        return None
    return (
        "runAsNonRoot != true",
        f"pod or {plural('container', names)} {quoted(names)} must set securityContext.runAsNonRoot=true",
    )


def _run_as_user(pod: CheckedPod) -> Violation:
    setters = pod.set_by(lambda context: context.runAsUser == 0)
    if not setters or pod.has_user_namespace or pod.minor < 23:
        return None
    return ("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0")


def _seccomp(pod: CheckedPod) -> Violation:
    if pod.windows:
        return None
    forbidden = forbidden_seccomp(pod)
    if forbidden is not None:
        return forbidden
    context = pod.spec.securityContext
    if context is not None and context.seccompProfile is not None:
        return None
    names = pod.containers_where(lambda context: context is None or context.seccompProfile is None)
    if not names:
        return None
    return (
        "seccompProfile",
        f"pod or {plural('container', names)} {quoted(names)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"',
    )


RESTRICTED: tuple[Callable[[CheckedPod], Violation], ...] = (
    app_armor,
    host_namespaces,
    host_ports,
    probe_hosts,
    privileged,
    se_linux,
    sysctls,
    host_process,
    _privilege_escalation,
    _capabilities,
    proc_mount,
    _volumes,
    _run_as_non_root,
    _run_as_user,
    _seccomp,
)
"""The checks of baseline that are not superseded, then its own; in upstream's order: by name."""
