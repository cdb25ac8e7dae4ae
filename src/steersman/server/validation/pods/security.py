"""Validation of security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_struct
from steersman.server.validation.pods.annotations import containers_of

_MAX_ID = 2**31 - 1
_IDS = names.inclusive_range(0, _MAX_ID)
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl = re.compile(_SYSCTL).match
_IPC_SYSCTLS = ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.")
_FS_GROUP_CHANGE_POLICIES = ("Always", "OnRootMismatch")
_SUPPLEMENTAL_GROUPS_POLICIES = ("Merge", "Strict")
_SELINUX_CHANGE_POLICIES = ("Recursive",)
_NOT_WINDOWS = "cannot be set for a windows pod"


def validate_pod_security_context(
    errors: FieldErrors, path: str, context: v1.PodSecurityContext, spec: v1.PodSpec
) -> None:
    for name, value in (
        ("fsGroup", context.fsGroup),
        ("runAsUser", context.runAsUser),
        ("runAsGroup", context.runAsGroup),
    ):
        _validate_id(errors, f"{path}.{name}", value)
    for i, group in enumerate(context.supplementalGroups):
        _validate_id(errors, f"{path}.supplementalGroups[{i}]", group)
    if spec.shareProcessNamespace and spec.hostPID:
        both = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.invalid(f"{path}.shareProcessNamespace", True, both)
    _validate_sysctls(errors, f"{path}.sysctls", context.sysctls, spec)
    _validate_optional_enum(
        errors, f"{path}.fsGroupChangePolicy", context.fsGroupChangePolicy, _FS_GROUP_CHANGE_POLICIES
    )
    _validate_seccomp_profile(errors, f"{path}.seccompProfile", context.seccompProfile)
    _validate_windows_options(errors, f"{path}.windowsOptions", context.windowsOptions)
    _validate_app_armor_profile(errors, f"{path}.appArmorProfile", context.appArmorProfile)
    _validate_optional_enum(
        errors,
        f"{path}.supplementalGroupsPolicy",
        context.supplementalGroupsPolicy,
        _SUPPLEMENTAL_GROUPS_POLICIES,
    )
    _validate_optional_enum(
        errors, f"{path}.seLinuxChangePolicy", context.seLinuxChangePolicy, _SELINUX_CHANGE_POLICIES
    )


def validate_security_context(
    errors: FieldErrors, path: str, context: v1.SecurityContext, *, host_users: bool
) -> None:
    _validate_id(errors, f"{path}.runAsUser", context.runAsUser)
    _validate_id(errors, f"{path}.runAsGroup", context.runAsGroup)
    if context.procMount is not None:
        _validate_optional_enum(errors, f"{path}.procMount", context.procMount, _PROC_MOUNTS)
        if host_users and context.procMount == "Unmasked":
            needs = "`hostUsers` must be false to use `Unmasked`"
            errors.invalid(f"{path}.procMount", context.procMount, needs)
    _validate_seccomp_profile(errors, f"{path}.seccompProfile", context.seccompProfile)
    if context.allowPrivilegeEscalation is False:
        cannot = "cannot set `allowPrivilegeEscalation` to false and"
        if context.privileged:
            errors.invalid(path, _format_security_context(context), f"{cannot} `privileged` to true")
        for capability in context.capabilities.add if context.capabilities is not None else ():
            if capability == "CAP_SYS_ADMIN":
                errors.invalid(
                    path, _format_security_context(context), f"{cannot} `capabilities.Add` CAP_SYS_ADMIN"
                )
    _validate_windows_options(errors, f"{path}.windowsOptions", context.windowsOptions)
    _validate_app_armor_profile(errors, f"{path}.appArmorProfile", context.appArmorProfile)


def _format_security_context(context: v1.SecurityContext) -> object:
    capabilities = context.capabilities
    shown = None
    if capabilities is not None:
        shown = go_struct(Add=capabilities.add or None, Drop=capabilities.drop or None)
    return go_struct(
        Capabilities=shown,
        Privileged=context.privileged,
        SELinuxOptions=_format_struct(context.seLinuxOptions, "user", "role", "type", "level"),
        WindowsOptions=_format_struct(
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
        SeccompProfile=_format_struct(context.seccompProfile, "type", "localhostProfile"),
        AppArmorProfile=_format_struct(context.appArmorProfile, "type", "localhostProfile"),
    )


def _format_struct(part: msgspec.Struct | None, *names: str) -> Verbatim | None:
    """A struct with upstream's Go field names."""
    if part is None:
        return None
    return go_struct(**{_go_field_name(name): getattr(part, name) for name in names})


def _go_field_name(name: str) -> str:
    name = name.replace("gmsa", "GMSA", 1)
    return name[0].upper() + name[1:]


def _validate_id(errors: FieldErrors, path: str, number: int | None) -> None:
    if number is not None and not 0 <= number <= _MAX_ID:
        errors.invalid(path, number, _IDS)


def _validate_optional_enum(
    errors: FieldErrors, path: str, value: str | None, choices: tuple[str, ...]
) -> None:
    if value is not None and value not in choices:
        errors.not_supported(path, value, choices)


def _validate_sysctls(
    errors: FieldErrors, path: str, sysctls: tuple[v1.Sysctl, ...], spec: v1.PodSpec
) -> None:
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
        dotted = _normalize_sysctl(name)
        if spec.hostNetwork and dotted.startswith("net."):
            errors.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        elif spec.hostIPC and dotted.startswith(_IPC_SYSCTLS):
            errors.invalid(at, name, "may not be specified when 'hostIPC' is true")
        names.append(name)


def _normalize_sysctl(name: str) -> str:
    """The name of a sysctl with dots as separators, where it was written with slashes."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))


def _validate_seccomp_profile(errors: FieldErrors, path: str, profile: v1.SeccompProfile | None) -> None:
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
        names.validate_descending_path(errors, at, profile.localhostProfile)


def _validate_app_armor_profile(errors: FieldErrors, path: str, profile: v1.AppArmorProfile | None) -> None:
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


def _validate_windows_options(
    errors: FieldErrors, path: str, options: v1.WindowsSecurityContextOptions | None
) -> None:
    if options is None:
        return
    name, spec, user = options.gmsaCredentialSpecName, options.gmsaCredentialSpec, options.runAsUserName
    if name is not None:
        errors.invalid_each(f"{path}.gmsaCredentialSpecName", name, names.dns1123_subdomain(name))
    if spec is not None and not spec:
        empty = "gmsaCredentialSpec cannot be an empty string"
        errors.invalid(f"{path}.gmsaCredentialSpec", spec, empty)
    # differs: of the Windows user names only the empty one is refused.
    if user is not None and not user:
        errors.invalid(f"{path}.runAsUserName", user, "runAsUserName cannot be an empty string")


# -- operating systems ------------------------------------------------------------------------

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


def validate_os(errors: FieldErrors, path: str, spec: v1.PodSpec, os: v1.PodOS) -> None:
    """Validates that the spec has no fields of another operating system."""
    if not os.name:
        errors.required(f"{path}.os.name")
    elif os.name not in ("linux", "windows"):
        errors.not_supported(f"{path}.os", os.name, ("linux", "windows"))
    elif os.name == "linux":
        _validate_linux(errors, path, spec)
    else:
        _validate_windows(errors, path, spec)


def _validate_linux(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    message = "windows options cannot be set for a linux pod"
    if spec.securityContext is not None and spec.securityContext.windowsOptions is not None:
        errors.forbidden(f"{path}.securityContext.windowsOptions", message)
    for at, context in _security_contexts(path, spec):
        if context.windowsOptions is not None:
            errors.forbidden(f"{at}.windowsOptions", message)


def _validate_windows(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    for name in _POD_LINUX_ONLY:
        on_spec = hasattr(spec, name)
        value = getattr(spec if on_spec else spec.securityContext, name, None)
        if value not in (None, (), False) or (value is False and name == "hostUsers"):
            parent = path if on_spec else f"{path}.securityContext"
            errors.forbidden(f"{parent}.{name}", _NOT_WINDOWS)
    for at, context in _security_contexts(path, spec):
        for name in _CONTAINER_LINUX_ONLY:
            if getattr(context, name) is not None:
                errors.forbidden(f"{at}.{name}", _NOT_WINDOWS)


def _security_contexts(path: str, spec: v1.PodSpec) -> Iterator[tuple[str, v1.SecurityContext]]:
    for at, container in containers_of(path, spec):
        if container.securityContext is not None:
            yield f"{at}.securityContext", container.securityContext


def validate_host_users(errors: FieldErrors, path: str, spec: v1.PodSpec) -> None:
    """Validates that a pod with its own user namespace shares no other namespace with its host."""
    message = "when `hostUsers` is false"
    if spec.hostNetwork:
        errors.forbidden(f"{path}.hostNetwork", message)
    if spec.hostPID:
        errors.forbidden(f"{path}.HostPID", message)
    if spec.hostIPC:
        errors.forbidden(f"{path}.HostIPC", message)
    for at, container in containers_of(path, spec):
        if container.volumeDevices:
            errors.forbidden(f"{at}.volumeDevices", message)
