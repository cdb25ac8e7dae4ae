"""The checks of the Pod Security Standard ``baseline``, which prevents known privilege escalations.

One function for each check, named after it. It returns the violation, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.server.admission.pod_security.violations import CheckedPod, Violation, distinct, plural, quoted

APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SELINUX = ("", "container_t", "container_init_t", "container_kvm_t")
_SYSCTLS = (
    (
        0,
        "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range "
        "net.ipv4.ip_unprivileged_port_start",
    ),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (
        29,
        "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl "
        "net.ipv4.tcp_keepalive_probes",
    ),
    (32, "net.ipv4.tcp_rmem net.ipv4.tcp_wmem"),
)
_CAPABILITIES = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]


def app_armor(pod: CheckedPod) -> Violation:
    def is_forbidden(context: Any) -> bool:
        profile = context.appArmorProfile
        return profile is not None and profile.type not in ("RuntimeDefault", "Localhost")

    setters = pod.set_by(is_forbidden)
    contexts = [pod.spec.securityContext, *(each.securityContext for each in pod.containers)]
    values = distinct(c.appArmorProfile.type for c in contexts if c is not None and is_forbidden(c))
    notes = sorted(
        f'{name}="{value}"'
        for name, value in pod.annotations.items()
        if name.startswith(APPARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if notes:
        setters.append(plural("annotation", notes))
    if not setters:
        return None
    values += notes
    return (
        plural("forbidden AppArmor profile", values),
        f"{' and '.join(setters)} must not set AppArmor profile type to {quoted(values)}",
    )


def capabilities(pod: CheckedPod) -> Violation:
    def extra(context: Any) -> list[str]:
        given = context.capabilities if context is not None else None
        return [name for name in given.add if name not in _CAPABILITIES] if given is not None else []

    names = pod.containers_where(lambda context: bool(extra(context)))
    if not names:
        return None
    added = distinct(name for each in pod.containers for name in extra(each.securityContext))
    return (
        "non-default capabilities",
        f"{plural('container', names)} {quoted(names)} must not include {quoted(added)} "
        "in securityContext.capabilities.add",
    )


def host_namespaces(pod: CheckedPod) -> Violation:
    spec = pod.spec
    given = (("hostNetwork", spec.hostNetwork), ("hostPID", spec.hostPID), ("hostIPC", spec.hostIPC))
    shared = [f"{name}=true" for name, value in given if value]
    return ("host namespaces", ", ".join(shared)) if shared else None


def host_paths(pod: CheckedPod) -> Violation:
    names = [volume.name for volume in pod.spec.volumes if volume.hostPath is not None]
    return ("hostPath volumes", f"{plural('volume', names)} {quoted(names)}") if names else None


def host_ports(pod: CheckedPod) -> Violation:
    names = [each.name for each in pod.containers if any(port.hostPort for port in each.ports)]
    if not names:
        return None
    ports = distinct(str(port.hostPort) for each in pod.containers for port in each.ports if port.hostPort)
    uses = "uses" if len(names) == 1 else "use"
    return (
        "hostPort",
        f"{plural('container', names)} {quoted(names)} {uses} {plural('hostPort', ports)} {', '.join(ports)}",
    )


def probe_hosts(pod: CheckedPod) -> Violation:
    if pod.minor < 34:
        return None
    found: dict[str, list[str]] = {}
    for each in pod.containers:
        handlers = [each.livenessProbe, each.readinessProbe, each.startupProbe]
        if each.lifecycle is not None:
            handlers += [each.lifecycle.postStart, each.lifecycle.preStop]
        for handler in handlers:
            for action in (handler.httpGet, handler.tcpSocket) if handler is not None else ():
                if action is not None and action.host:
                    found.setdefault(each.name, []).append(action.host)
    if not found:
        return None
    names, hosts = sorted(found), distinct(host for hosts in found.values() for host in hosts)
    uses = "uses" if len(names) == 1 else "use"
    return (
        "probe or lifecycle host",
        f"{plural('container', names)} {quoted(names)} {uses} {plural('probe or lifecycle host', hosts)} "
        f"{quoted(hosts)}",
    )


def privileged(pod: CheckedPod) -> Violation:
    names = pod.containers_where(lambda context: context is not None and bool(context.privileged))
    if not names:
        return None
    return (
        "privileged",
        f"{plural('container', names)} {quoted(names)} must not set securityContext.privileged=true",
    )


def proc_mount(pod: CheckedPod) -> Violation:
    def other(context: Any) -> str:
        mount = context.procMount if context is not None else None
        return mount if mount not in (None, "Default") else ""

    names = pod.containers_where(lambda context: bool(other(context)))
    if not names:
        return None
    kinds = distinct(filter(None, (other(each.securityContext) for each in pod.containers)))
    return (
        "procMount",
        f"{plural('container', names)} {quoted(names)} must not set securityContext.procMount "
        f"to {quoted(kinds)}",
    )


def proc_mount_baseline(pod: CheckedPod) -> Violation:
    return None if pod.has_user_namespace else proc_mount(pod)


def se_linux(pod: CheckedPod) -> Violation:
    allowed = (*_SELINUX, "container_engine_t") if pod.minor >= 31 else _SELINUX
    seen: list[Any] = []

    def is_forbidden(context: Any) -> bool:
        options = context.seLinuxOptions
        if options is None or (options.type in allowed and not options.user and not options.role):
            return False
        seen.append(options)
        return True

    setters = pod.set_by(is_forbidden)
    if not setters:
        return None
    types = distinct(options.type for options in seen if options.type not in allowed)
    details = [f"{plural('type', types)} {quoted(types)}"] if types else []
    if any(options.user for options in seen):
        details.append("user may not be set")
    if any(options.role for options in seen):
        details.append("role may not be set")
    return (
        "seLinuxOptions",
        f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(details)}",
    )


def forbidden_seccomp(pod: CheckedPod) -> Violation:
    seen: list[str] = []

    def is_forbidden(context: Any) -> bool:
        profile = context.seccompProfile
        if profile is None or profile.type in ("RuntimeDefault", "Localhost"):
            return False
        seen.append(profile.type)
        return True

    setters = pod.set_by(is_forbidden)
    if not setters:
        return None
    return (
        "seccompProfile",
        f"{' and '.join(setters)} must not set securityContext.seccompProfile.type to {quoted(distinct(seen))}",
    )


def sysctls(pod: CheckedPod) -> Violation:
    allowed = [name for since, names in _SYSCTLS if pod.minor >= since for name in names.split()]
    context = pod.spec.securityContext
    names = [each.name for each in context.sysctls if each.name not in allowed] if context is not None else []
    return ("forbidden sysctls", ", ".join(names)) if names else None


def host_process(pod: CheckedPod) -> Violation:
    setters = pod.set_by(
        lambda context: context.windowsOptions is not None and bool(context.windowsOptions.hostProcess)
    )
    if not setters:
        return None
    return (
        "hostProcess",
        f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true",
    )


BASELINE: tuple[Callable[[CheckedPod], Violation], ...] = (
    app_armor,
    capabilities,
    host_namespaces,
    host_paths,
    host_ports,
    probe_hosts,
    privileged,
    proc_mount_baseline,
    se_linux,
    forbidden_seccomp,
    sysctls,
    host_process,
)
"""The checks, in upstream's order: by name."""
