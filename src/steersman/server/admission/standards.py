"""The Pod Security Standards: what a pod must not do at the levels baseline and restricted.

Checks are told in upstream's order: those of baseline by name, then those of restricted by name.
differs: of old versions of the standards only what changed since 1.19 is known; older ones are judged like 1.19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from steersman.api.generated.core_v1 import PodSpec

LATEST = 36

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


class Subject(NamedTuple):
    """A pod under judgement, and the version of the standards it is judged by."""

    spec: PodSpec
    annotations: Mapping[str, str]
    minor: int

    @property
    def containers(self) -> tuple[Any, ...]:
        return (*self.spec.initContainers, *self.spec.containers, *self.spec.ephemeralContainers)

    @property
    def windows(self) -> bool:
        return self.minor >= 25 and self.spec.os is not None and self.spec.os.name == "windows"

    @property
    def own_users(self) -> bool:
        """Whether its users are not the node's."""
        return self.minor >= 35 and self.spec.hostUsers is False

    def named(self, test: Callable[[Any], bool]) -> list[str]:
        """The containers whose security context passes a test; the context may be None."""
        return [each.name for each in self.containers if test(each.securityContext)]

    def setters(self, test: Callable[[Any], bool]) -> list[str]:
        """Who sets something, as messages say: ``pod``, ``container "a"``. The context is never None here."""
        there = self.spec.securityContext
        who = ["pod"] if there is not None and test(there) else []
        names = self.named(lambda context: context is not None and test(context))
        return [*who, f"{_plural('container', names)} {_quoted(names)}"] if names else who


Fault = tuple[str, str] | None
"""A reason and a detail."""


def faults(level: str, minor: int, spec: PodSpec, annotations: Mapping[str, str]) -> list[tuple[str, str]]:
    """What a pod does that a level does not allow: reasons, each with a detail."""
    if level == "privileged":
        return []
    pod = Subject(spec, annotations, minor)
    checks: Iterable[Callable[[Subject], Fault]] = _BASELINE if level == "baseline" else _RESTRICTED
    return [fault for fault in (check(pod) for check in checks) if fault is not None]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(word: str, names: list[str]) -> str:
    return word if len(names) == 1 else f"{word}s"


def _distinct(names: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(names))


# -- baseline ---------------------------------------------------------------------------------


def _app_armor(pod: Subject) -> Fault:
    def bad(context: Any) -> bool:
        profile = context.appArmorProfile
        return profile is not None and profile.type not in ("RuntimeDefault", "Localhost")

    who = pod.setters(bad)
    contexts = [pod.spec.securityContext, *(each.securityContext for each in pod.containers)]
    values = _distinct(c.appArmorProfile.type for c in contexts if c is not None and bad(c))
    notes = sorted(
        f'{name}="{value}"'
        for name, value in pod.annotations.items()
        if name.startswith(APPARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if notes:
        who.append(_plural("annotation", notes))
    if not who:
        return None
    values += notes
    return (
        _plural("forbidden AppArmor profile", values),
        f"{' and '.join(who)} must not set AppArmor profile type to {_quoted(values)}",
    )


def _capabilities(pod: Subject) -> Fault:
    def extra(context: Any) -> list[str]:
        given = context.capabilities if context is not None else None
        return [name for name in given.add if name not in _CAPABILITIES] if given is not None else []

    names = pod.named(lambda context: bool(extra(context)))
    if not names:
        return None
    added = _distinct(name for each in pod.containers for name in extra(each.securityContext))
    return (
        "non-default capabilities",
        f"{_plural('container', names)} {_quoted(names)} must not include {_quoted(added)} "
        "in securityContext.capabilities.add",
    )


def _host_namespaces(pod: Subject) -> Fault:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if getattr(pod.spec, name)]
    return ("host namespaces", ", ".join(shared)) if shared else None


def _host_paths(pod: Subject) -> Fault:
    names = [volume.name for volume in pod.spec.volumes if volume.hostPath is not None]
    return ("hostPath volumes", f"{_plural('volume', names)} {_quoted(names)}") if names else None


def _host_ports(pod: Subject) -> Fault:
    names = [each.name for each in pod.containers if any(port.hostPort for port in each.ports)]
    if not names:
        return None
    ports = _distinct(str(port.hostPort) for each in pod.containers for port in each.ports if port.hostPort)
    uses = "uses" if len(names) == 1 else "use"
    return (
        "hostPort",
        f"{_plural('container', names)} {_quoted(names)} {uses} {_plural('hostPort', ports)} {', '.join(ports)}",
    )


def _probe_hosts(pod: Subject) -> Fault:
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
    names, hosts = sorted(found), _distinct(host for hosts in found.values() for host in hosts)
    uses = "uses" if len(names) == 1 else "use"
    return (
        "probe or lifecycle host",
        f"{_plural('container', names)} {_quoted(names)} {uses} {_plural('probe or lifecycle host', hosts)} "
        f"{_quoted(hosts)}",
    )


def _privileged(pod: Subject) -> Fault:
    names = pod.named(lambda context: context is not None and bool(context.privileged))
    if not names:
        return None
    return (
        "privileged",
        f"{_plural('container', names)} {_quoted(names)} must not set securityContext.privileged=true",
    )


def _proc_mount(pod: Subject) -> Fault:
    def other(context: Any) -> str:
        mount = context.procMount if context is not None else None
        return mount if mount not in (None, "Default") else ""

    names = pod.named(lambda context: bool(other(context)))
    if not names:
        return None
    kinds = _distinct(filter(None, (other(each.securityContext) for each in pod.containers)))
    return (
        "procMount",
        f"{_plural('container', names)} {_quoted(names)} must not set securityContext.procMount "
        f"to {_quoted(kinds)}",
    )


def _proc_mount_baseline(pod: Subject) -> Fault:
    return None if pod.own_users else _proc_mount(pod)


def _se_linux(pod: Subject) -> Fault:
    allowed = (*_SELINUX, "container_engine_t") if pod.minor >= 31 else _SELINUX
    seen: list[Any] = []

    def bad(context: Any) -> bool:
        options = context.seLinuxOptions
        if options is None or (options.type in allowed and not options.user and not options.role):
            return False
        seen.append(options)
        return True

    who = pod.setters(bad)
    if not who:
        return None
    types = _distinct(options.type for options in seen if options.type not in allowed)
    said = [f"{_plural('type', types)} {_quoted(types)}"] if types else []
    if any(options.user for options in seen):
        said.append("user may not be set")
    if any(options.role for options in seen):
        said.append("role may not be set")
    return (
        "seLinuxOptions",
        f"{' and '.join(who)} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}",
    )


def _bad_seccomp(pod: Subject) -> Fault:
    seen: list[str] = []

    def bad(context: Any) -> bool:
        profile = context.seccompProfile
        if profile is None or profile.type in ("RuntimeDefault", "Localhost"):
            return False
        seen.append(profile.type)
        return True

    who = pod.setters(bad)
    if not who:
        return None
    return (
        "seccompProfile",
        f"{' and '.join(who)} must not set securityContext.seccompProfile.type to {_quoted(_distinct(seen))}",
    )


def _sysctls(pod: Subject) -> Fault:
    allowed = [name for since, names in _SYSCTLS if pod.minor >= since for name in names.split()]
    context = pod.spec.securityContext
    bad = [each.name for each in context.sysctls if each.name not in allowed] if context is not None else []
    return ("forbidden sysctls", ", ".join(bad)) if bad else None


def _host_process(pod: Subject) -> Fault:
    who = pod.setters(
        lambda context: context.windowsOptions is not None and bool(context.windowsOptions.hostProcess)
    )
    if not who:
        return None
    return (
        "hostProcess",
        f"{' and '.join(who)} must not set securityContext.windowsOptions.hostProcess=true",
    )


# -- restricted -------------------------------------------------------------------------------


def _escalation(pod: Subject) -> Fault:
    names = pod.named(lambda context: context is None or context.allowPrivilegeEscalation is not False)
    if not names or pod.windows:
        return None
    return (
        "allowPrivilegeEscalation != false",
        f"{_plural('container', names)} {_quoted(names)} must set securityContext.allowPrivilegeEscalation=false",
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
            f'{_plural("container", keeping)} {_quoted(keeping)} must set securityContext.capabilities.drop=["ALL"]'
        )
    if adding:
        added = _distinct(
            name
            for each in given.values()
            if each is not None
            for name in each.add
            if name != "NET_BIND_SERVICE"
        )
        said.append(
            f"{_plural('container', adding)} {_quoted(adding)} must not include {_quoted(added)} "
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
    types = _distinct(kinds)
    uses = "uses" if len(bad) == 1 else "use"
    return (
        "restricted volume types",
        f"{_plural('volume', bad)} {_quoted(bad)} {uses} {_plural('restricted volume type', types)} "
        f"{_quoted(types)}",
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
        f"pod or {_plural('container', names)} {_quoted(names)} must set securityContext.runAsNonRoot=true",
    )


def _root(pod: Subject) -> Fault:
    who = pod.setters(lambda context: context.runAsUser == 0)
    if not who or pod.own_users or pod.minor < 23:
        return None
    return ("runAsUser=0", f"{' and '.join(who)} must not set runAsUser=0")


def _seccomp(pod: Subject) -> Fault:
    if pod.windows:
        return None
    bad = _bad_seccomp(pod)
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
        f"pod or {_plural('container', names)} {_quoted(names)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"',
    )


_BASELINE: tuple[Callable[[Subject], Fault], ...] = (
    _app_armor,
    _capabilities,
    _host_namespaces,
    _host_paths,
    _host_ports,
    _probe_hosts,
    _privileged,
    _proc_mount_baseline,
    _se_linux,
    _bad_seccomp,
    _sysctls,
    _host_process,
)
_RESTRICTED: tuple[Callable[[Subject], Fault], ...] = (
    _app_armor,
    _host_namespaces,
    _host_ports,
    _probe_hosts,
    _privileged,
    _se_linux,
    _sysctls,
    _host_process,
    _escalation,
    _dropped,
    _proc_mount,
    _volumes,
    _non_root,
    _root,
    _seccomp,
)
