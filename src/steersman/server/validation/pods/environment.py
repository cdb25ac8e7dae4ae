"""Validation of a container's environment variables and their sources."""

from __future__ import annotations

import re

from steersman.api.generated import core_v1 as v1
from steersman.api.quantity import Quantity
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import FieldErrors

_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_FIELD_LABELS = frozenset(
    {*_ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPT = re.compile(r"(?P<path>.+?)\['(?P<key>.*)'\]", re.DOTALL)


def validate_env(errors: FieldErrors, path: str, variables: tuple[v1.EnvVar, ...]) -> None:
    for i, variable in enumerate(variables):
        if not variable.name:
            errors.required(f"{path}[{i}].name")
        else:
            for detail in names.env_var_name(variable.name):
                errors.invalid(f"{path}[{i}].name", variable.name, detail)
        if variable.valueFrom is not None:
            _validate_env_source(errors, f"{path}[{i}].valueFrom", variable, variable.valueFrom)


def _validate_env_source(
    errors: FieldErrors, path: str, variable: v1.EnvVar, source: v1.EnvVarSource
) -> None:
    count = 0
    if source.fieldRef is not None:
        count += 1
        validate_field_ref(errors, f"{path}.fieldRef", source.fieldRef, _ENV_FIELDS)
    if source.resourceFieldRef is not None:
        count += 1
        validate_resource_field_ref(errors, f"{path}.resourceFieldRef", source.resourceFieldRef)
    for name, reference in (
        ("configMapKeyRef", source.configMapKeyRef),
        ("secretKeyRef", source.secretKeyRef),
    ):
        if reference is not None:
            count += 1
            _validate_key_ref(errors, f"{path}.{name}", reference)
    if source.fileKeyRef is not None:
        count += 1
        _validate_file_key_ref(errors, f"{path}.fileKeyRef", source.fileKeyRef)
    if not count:
        errors.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
            "`fileKeyRef`",
        )
    elif variable.value:
        errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        errors.invalid(path, "", "may not have more than one field specified at a time")


def validate_field_ref(
    errors: FieldErrors, path: str, ref: v1.ObjectFieldSelector, choices: tuple[str, ...]
) -> None:
    """Validates a reference to a field of the pod."""
    if not ref.apiVersion:
        errors.required(f"{path}.apiVersion")
        return
    name = ref.fieldPath
    if not name:
        errors.required(f"{path}.fieldPath")
        return
    if ref.apiVersion != "v1":
        detail = f"error converting fieldPath: unsupported pod version: {ref.apiVersion}"
        errors.invalid(f"{path}.fieldPath", name, detail)
        return
    # spec.host is the former name of spec.nodeName.
    name = "spec.nodeName" if name == "spec.host" else name
    subscript = _SUBSCRIPT.fullmatch(name)
    if subscript is None and name not in _FIELD_LABELS:
        detail = f"error converting fieldPath: field label not supported: {name}"
        errors.invalid(f"{path}.fieldPath", name, detail)
    elif subscript is None:
        if name not in choices:
            errors.not_supported(f"{path}.fieldPath", name, choices)
    else:
        parent, key = subscript["path"], subscript["key"]
        if parent not in ("metadata.annotations", "metadata.labels"):
            detail = f"error converting fieldPath: field label does not support subscript: {name}"
            errors.invalid(f"{path}.fieldPath", name, detail)
        else:
            shown = key.lower() if parent == "metadata.annotations" else key
            errors.invalid_each(path, shown, names.qualified_name(shown))


def validate_resource_field_ref(
    errors: FieldErrors, path: str, ref: v1.ResourceFieldSelector, *, needs_container: bool = False
) -> None:
    """Validates a reference to a container's requests or limits."""
    name = ref.resource
    if needs_container and not ref.containerName:
        errors.required(f"{path}.containerName")
    elif not name:
        errors.required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        errors.not_supported(f"{path}.resource", name, _RESOURCES)
    _validate_divisor(errors, f"{path}.divisor", name, resources.parse_quantity(ref.divisor))


def _validate_divisor(errors: FieldErrors, path: str, name: str, divisor: Quantity) -> None:
    if not divisor.nanos:
        return
    resource = name.partition(".")[2]
    if resource == "cpu":
        if str(divisor) not in ("1m", "1"):
            errors.invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource")
        return
    label = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(resource)
    label = "hugepages" if name.startswith(_HUGE_PAGES) else label
    if label is not None and str(divisor) not in _BYTE_DIVISORS:
        errors.invalid(
            path,
            name,
            f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {label} resource",
        )


def _validate_key_ref(
    errors: FieldErrors, path: str, reference: v1.ConfigMapKeySelector | v1.SecretKeySelector
) -> None:
    errors.invalid_each(f"{path}.name", reference.name, names.dns1123_subdomain(reference.name))
    if not reference.key:
        errors.required(f"{path}.key")
    else:
        errors.invalid_each(f"{path}.key", reference.key, names.config_map_key(reference.key))


def _validate_file_key_ref(errors: FieldErrors, path: str, reference: v1.FileKeySelector) -> None:
    if not reference.key:
        errors.required(f"{path}.key")
    else:
        errors.invalid_each(f"{path}.key", reference.key, names.env_var_name(reference.key))
    if not reference.volumeName:
        errors.required(f"{path}.volumeName")
    else:
        errors.invalid_each(
            f"{path}.volumeName", reference.volumeName, names.dns1123_label(reference.volumeName)
        )
    if not reference.path:
        errors.required(f"{path}.path")
    else:
        names.validate_path_no_backsteps(errors, f"{path}.path", reference.path)


def validate_env_from(errors: FieldErrors, path: str, sources: tuple[v1.EnvFromSource, ...]) -> None:
    """Validates envFrom sources."""
    for i, source in enumerate(sources):
        at = f"{path}[{i}]"
        if source.prefix:
            errors.invalid_each(f"{at}.prefix", source.prefix, names.env_var_name(source.prefix))
        count = 0
        for name, reference in (("configMapRef", source.configMapRef), ("secretRef", source.secretRef)):
            if reference is None:
                continue
            count += 1
            if not reference.name:
                errors.required(f"{at}.{name}.name")
            else:
                details = names.generate_name(names.dns1123_subdomain, reference.name)
                errors.invalid_each(f"{at}.{name}.name", reference.name, details)
        if not count:
            errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif count > 1:
            errors.invalid(path, "", "may not have more than one field specified at a time")


def validate_file_key_volumes(
    errors: FieldErrors,
    path: str,
    containers: tuple[v1.Container, ...],
    volumes: tuple[v1.Volume, ...],
) -> None:
    """Validates that fileKeyRef refers to an emptyDir volume."""
    for i, container in enumerate(containers):
        for j, variable in enumerate(container.env):
            if variable.valueFrom is None or variable.valueFrom.fileKeyRef is None:
                continue
            at = f"{path}[{i}].env[{j}].valueFrom.fileKeyRef.volumeName"
            name = variable.valueFrom.fileKeyRef.volumeName
            volume = next((volume for volume in reversed(volumes) if volume.name == name), None)
            if volume is None:
                errors.not_found(at, name)
            elif volume.emptyDir is None:
                errors.invalid(at, name, "referenced volume must be of type emptyDir")
