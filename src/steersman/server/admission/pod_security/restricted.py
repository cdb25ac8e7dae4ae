"""The Pod Security Standard ``restricted``: on top of ``baseline``, what a careful pod says of itself.

One function for each check. They answer what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.server.admission.pod_security.baseline import (
    app_armor,
    bad_seccomp,
    host_namespaces,
    host_ports,
    host_process,
    privileged,
    probe_hosts,
    proc_mount,
    se_linux,
    sysctls,
)
from steersman.server.admission.pod_security.violations import Fault, Subject, distinct, plural, quoted

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


def _escalation(pod: Subject) -> Fault:
    names = pod.named(lambda context: context is None or context.allowPrivilegeEscalation is not False)
    if not names or pod.windows:
        return None
    return (
        "allowPrivilegeEscalation != false",
        f"{plural('container', names)} {quoted(names)} must set securityContext.allowPrivilegeEscalation=false",
    )


def _dropped(pod: Subject) -> Fault:
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
    said = []
    if keeping:
        said.append(
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
        said.append(
            f"{plural('container', adding)} {quoted(adding)} must not include {quoted(added)} "
            "in securityContext.capabilities.add"
        )
    return ("unrestricted capabilities", "; ".join(said)) if said else None


def _volumes(pod: Subject) -> Fault:
    bad: list[str] = []
    kinds: list[str] = []
    for volume in pod.spec.volumes:
        there = [
            name for name in volume.__struct_fields__ if name != "name" and getattr(volume, name) is not None
        ]
        if not any(name in _VOLUMES for name in there):
            bad.append(volume.name)
            kinds.append(there[0] if there else "unknown")
    if not bad:
        return None
    types = distinct(kinds)
    uses = "uses" if len(bad) == 1 else "use"
    return (
        "restricted volume types",
        f"{plural('volume', bad)} {quoted(bad)} {uses} {plural('restricted volume type', types)} "
        f"{quoted(types)}",
    )


def _non_root(pod: Subject) -> Fault:
    if pod.own_users:
        return None
    who = pod.setters(lambda context: context.runAsNonRoot is False)
    if who:
        return (
            "runAsNonRoot != true",
            f"{' and '.join(who)} must not set securityContext.runAsNonRoot=false",
        )
    context = pod.spec.securityContext
    if context is not None and context.runAsNonRoot:
        return None
    names = pod.named(lambda context: context is None or context.runAsNonRoot is None)
    if not names:
        return None
    return (
        "runAsNonRoot != true",
        f"pod or {plural('container', names)} {quoted(names)} must set securityContext.runAsNonRoot=true",
    )


def _root(pod: Subject) -> Fault:
    who = pod.setters(lambda context: context.runAsUser == 0)
    if not who or pod.own_users or pod.minor < 23:
        return None
    return ("runAsUser=0", f"{' and '.join(who)} must not set runAsUser=0")


def _seccomp(pod: Subject) -> Fault:
    if pod.windows:
        return None
    bad = bad_seccomp(pod)
    if bad is not None:
        return bad
    context = pod.spec.securityContext
    if context is not None and context.seccompProfile is not None:
        return None
    names = pod.named(lambda context: context is None or context.seccompProfile is None)
    if not names:
        return None
    return (
        "seccompProfile",
        f"pod or {plural('container', names)} {quoted(names)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"',
    )


RESTRICTED: tuple[Callable[[Subject], Fault], ...] = (
    app_armor,
    host_namespaces,
    host_ports,
    probe_hosts,
    privileged,
    se_linux,
    sysctls,
    host_process,
    _escalation,
    _dropped,
    proc_mount,
    _volumes,
    _non_root,
    _root,
    _seccomp,
)
"""Those of baseline that are not superseded, then its own; in upstream's order: by name."""
