"""Security contexts, of pods and of containers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_struct

_MAX_ID = 2**31 - 1
_IDS = text.between(0, _MAX_ID)
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl = re.compile(_SYSCTL).match
_IPC = ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.")
_GROUP_POLICIES = ("Always", "OnRootMismatch")
_SUPPLEMENTAL = ("Merge", "Strict")
_SELINUX = ("Recursive",)
_NOT_WINDOWS = "cannot be set for a windows pod"


def pod(errors: FieldErrors, path: str, context: v1.PodSecurityContext, spec: v1.PodSpec) -> None:
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        _id(errors, f"{path}.{name}", getattr(context, name))
    for i, group in enumerate(context.supplementalGroups):
        _id(errors, f"{path}.supplementalGroups[{i}]", group)
    if spec.shareProcessNamespace and spec.hostPID:
        both = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.invalid(f"{path}.shareProcessNamespace", True, both)
    _sysctls(errors, f"{path}.sysctls", context.sysctls, spec)
    _one_of(errors, f"{path}.fsGroupChangePolicy", context.fsGroupChangePolicy, _GROUP_POLICIES)
    _seccomp(errors, f"{path}.seccompProfile", context.seccompProfile)
    _windows(errors, f"{path}.windowsOptions", context.windowsOptions)
    _app_armor(errors, f"{path}.appArmorProfile", context.appArmorProfile)
    _one_of(errors, f"{path}.supplementalGroupsPolicy", context.supplementalGroupsPolicy, _SUPPLEMENTAL)
    _one_of(errors, f"{path}.seLinuxChangePolicy", context.seLinuxChangePolicy, _SELINUX)


def container(errors: FieldErrors, path: str, context: v1.SecurityContext, *, host_users: bool) -> None:
    _id(errors, f"{path}.runAsUser", context.runAsUser)
    _id(errors, f"{path}.runAsGroup", context.runAsGroup)
    if context.procMount is not None:
        _one_of(errors, f"{path}.procMount", context.procMount, _PROC_MOUNTS)
        if host_users and context.procMount == "Unmasked":
            needs = "`hostUsers` must be false to use `Unmasked`"
            errors.invalid(f"{path}.procMount", context.procMount, needs)
    _seccomp(errors, f"{path}.seccompProfile", context.seccompProfile)
    if context.allowPrivilegeEscalation is False:
        cannot = "cannot set `allowPrivilegeEscalation` to false and"
        if context.privileged:
            errors.invalid(path, _shown(context), f"{cannot} `privileged` to true")
        for capability in context.capabilities.add if context.capabilities is not None else ():
            if capability == "CAP_SYS_ADMIN":
                errors.invalid(path, _shown(context), f"{cannot} `capabilities.Add` CAP_SYS_ADMIN")
    _windows(errors, f"{path}.windowsOptions", context.windowsOptions)
    _app_armor(errors, f"{path}.appArmorProfile", context.appArmorProfile)


def _shown(context: v1.SecurityContext) -> object:
    capabilities = context.capabilities
    shown = None
    if capabilities is not None:
        shown = go_struct(Add=capabilities.add or None, Drop=capabilities.drop or None)
    return go_struct(
        Capabilities=shown,
        Privileged=context.privileged,
        SELinuxOptions=_named(context.seLinuxOptions, "user", "role", "type", "level"),
        WindowsOptions=_named(
            context.windowsOptions,
            "gmsaCredentialSpecName",
            "gmsaCredentialSpec",
            "runAsUserName",
            "hostProcess",
        ),
        RunAsUser=context.runAsUser,
        RunAsGroup=context.runAsGroup,
        RunAsNonRoot=context.runAsNonRoot,
        ReadOnlyRootFilesystem=context.readOnlyRootFilesystem,
        AllowPrivilegeEscalation=context.allowPrivilegeEscalation,
        ProcMount=context.procMount,
        SeccompProfile=_named(context.seccompProfile, "type", "localhostProfile"),
        AppArmorProfile=_named(context.appArmorProfile, "type", "localhostProfile"),
    )


def _named(part: Any, *names: str) -> Verbatim | None:
    """A part under the names it has in the real server's memory."""
    if part is None:
        return None
    return go_struct(**{_initial(name): getattr(part, name) for name in names})


def _initial(name: str) -> str:
    name = name.replace("gmsa", "GMSA", 1)
    return name[0].upper() + name[1:]


def _id(errors: FieldErrors, path: str, number: int | None) -> None:
    if number is not None and not 0 <= number <= _MAX_ID:
        errors.invalid(path, number, _IDS)


def _one_of(errors: FieldErrors, path: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        errors.not_supported(path, value, choices)


def _sysctls(errors: FieldErrors, path: str, sysctls: tuple[v1.Sysctl, ...], spec: v1.PodSpec) -> None:
    names: list[str] = []
    for i, sysctl in enumerate(sysctls):
        at = f"{path}[{i}].name"
        name = sysctl.name
        if not name:
            errors.required(at)
        elif len(name) > 253 or not _is_sysctl(name):
            errors.invalid(at, name, f"must have at most 253 characters and match regex {_SYSCTL}")
        elif name in names:
            errors.duplicate(at, name)
        dotted = _dotted(name)
        if spec.hostNetwork and dotted.startswith("net."):
            errors.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        elif spec.hostIPC and dotted.startswith(_IPC):
            errors.invalid(at, name, "may not be specified when 'hostIPC' is true")
        names.append(name)


def _dotted(name: str) -> str:
    """A kernel parameter with dots between its parts, however it was written."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))


def _seccomp(errors: FieldErrors, path: str, profile: v1.SeccompProfile | None) -> None:
    if profile is None:
        return
    if not profile.type:
        errors.required(f"{path}.type", "type is required when seccompProfile is set")
    elif profile.type not in _PROFILES:
        errors.not_supported(f"{path}.type", profile.type, _PROFILES)
    at = f"{path}.localhostProfile"
    if profile.type != "Localhost":
        if profile.localhostProfile is not None:
            shown = go_struct(Type=profile.type, LocalhostProfile=profile.localhostProfile)
            errors.invalid(at, shown, "can only be set when seccomp type is Localhost")
    elif profile.localhostProfile is None:
        errors.required(at, "must be set when seccomp type is Localhost")
    else:
        text.descending(errors, at, profile.localhostProfile)


def _app_armor(errors: FieldErrors, path: str, profile: v1.AppArmorProfile | None) -> None:
    if profile is None:
        return
    at, local = f"{path}.localhostProfile", profile.localhostProfile
    if profile.type == "Localhost":
        if not local:
            errors.required(at, "must be set when AppArmor type is Localhost")
        elif local != local.strip():
            errors.invalid(at, local, "must not be padded with whitespace")
        if local and len(local) > 4095:
            errors.too_long(at, 4095)
    elif not profile.type:
        errors.required(f"{path}.type", "type is required when appArmorProfile is set")
    elif profile.type not in _PROFILES:
        errors.not_supported(f"{path}.type", profile.type, _PROFILES)
    elif local is not None:
        errors.invalid(at, local, "can only be set when AppArmor type is Localhost")


def _windows(errors: FieldErrors, path: str, options: v1.WindowsSecurityContextOptions | None) -> None:
    if options is None:
        return
    name, spec, user = options.gmsaCredentialSpecName, options.gmsaCredentialSpec, options.runAsUserName
    if name is not None:
        errors.invalid_each(f"{path}.gmsaCredentialSpecName", name, text.subdomain(name))
    if spec is not None and not spec:
        empty = "gmsaCredentialSpec cannot be an empty string"
        errors.invalid(f"{path}.gmsaCredentialSpec", spec, empty)
    # differs: of the names of Windows' users only the empty one is refused.
    if user is not None and not user:
        errors.invalid(f"{path}.runAsUserName", user, "runAsUserName cannot be an empty string")


# -- by operating system ----------------------------------------------------------------------

_POD_LINUX_ONLY = (
    "appArmorProfile",
    "seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_LINUX_ONLY = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def system(errors: FieldErrors, path: str, spec: v1.PodSpec, os: v1.PodOS) -> None:
    """What an operating system rules out."""
    if not os.name:
        errors.required(f"{path}.os.name")
    elif os.name not in ("linux", "windows"):
        errors.not_supported(f"{path}.os", os.name, ("linux", "windows"))
    elif os.name == "linux":
        _linux(errors, path, spec)
    else:
        _on_windows(errors, path, spec)


def _linux(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    says = "windows options cannot be set for a linux pod"
    if spec.securityContext is not None and spec.securityContext.windowsOptions is not None:
        errors.forbidden(f"{path}.securityContext.windowsOptions", says)
    for at, context in _contexts(path, spec):
        if context.windowsOptions is not None:
            errors.forbidden(f"{at}.windowsOptions", says)


def _on_windows(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    for name in _POD_LINUX_ONLY:
        on_spec = hasattr(spec, name)
        value = getattr(spec if on_spec else spec.securityContext, name, None)
        if value not in (None, (), False) or (value is False and name == "hostUsers"):
            where = path if on_spec else f"{path}.securityContext"
            errors.forbidden(f"{where}.{name}", _NOT_WINDOWS)
    for at, context in _contexts(path, spec):
        for name in _CONTAINER_LINUX_ONLY:
            if getattr(context, name) is not None:
                errors.forbidden(f"{at}.{name}", _NOT_WINDOWS)


def _contexts(path: str, spec: v1.PodSpec) -> Iterator[tuple[str, v1.SecurityContext]]:
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for i, one in enumerate(getattr(spec, name)):
            if one.securityContext is not None:
                yield f"{path}.{name}[{i}].securityContext", one.securityContext


def host_users(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    """A pod with users of its own shares nothing else with its host."""
    says = "when `hostUsers` is false"
    if spec.hostNetwork:
        errors.forbidden(f"{path}.hostNetwork", says)
    if spec.hostPID:
        errors.forbidden(f"{path}.HostPID", says)
    if spec.hostIPC:
        errors.forbidden(f"{path}.HostIPC", says)
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for i, one in enumerate(getattr(spec, name)):
            if one.volumeDevices:
                errors.forbidden(f"{path}.{name}[{i}].volumeDevices", says)
