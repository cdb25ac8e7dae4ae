"""The environment of a container: its variables, and where their values come from."""

from __future__ import annotations

import re

from steersman.api.generated import core_v1 as v1
from steersman.api.quantity import Quantity
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import Found

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
_KNOWN_FIELDS = frozenset(
    {*_ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPT = re.compile(r"(?P<path>.+?)\['(?P<key>.*)'\]", re.DOTALL)


def variables(found: Found, path: str, given: tuple[v1.EnvVar, ...]) -> None:
    for i, variable in enumerate(given):
        if not variable.name:
            found.required(f"{path}[{i}].name")
        else:
            for why in names.environment(variable.name):
                found.invalid(f"{path}[{i}].name", variable.name, why)
        if variable.valueFrom is not None:
            _source(found, f"{path}[{i}].valueFrom", variable, variable.valueFrom)


def _source(found: Found, path: str, variable: v1.EnvVar, source: v1.EnvVarSource) -> None:
    count = 0
    if source.fieldRef is not None:
        count += 1
        field(found, f"{path}.fieldRef", source.fieldRef, _ENV_FIELDS)
    if source.resourceFieldRef is not None:
        count += 1
        resource_field(found, f"{path}.resourceFieldRef", source.resourceFieldRef)
    for name in ("configMapKeyRef", "secretKeyRef"):
        reference = getattr(source, name)
        if reference is not None:
            count += 1
            _key(found, f"{path}.{name}", reference)
    if source.fileKeyRef is not None:
        count += 1
        _file_key(found, f"{path}.fileKeyRef", source.fileKeyRef)
    if not count:
        found.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
            "`fileKeyRef`",
        )
    elif variable.value:
        found.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        found.invalid(path, "", "may not have more than one field specified at a time")


def field(found: Found, path: str, ref: v1.ObjectFieldSelector, choices: tuple[str, ...]) -> None:
    """A field of the pod itself."""
    if not ref.apiVersion:
        found.required(f"{path}.apiVersion")
        return
    name = ref.fieldPath
    if not name:
        found.required(f"{path}.fieldPath")
        return
    if ref.apiVersion != "v1":
        why = f"error converting fieldPath: unsupported pod version: {ref.apiVersion}"
        found.invalid(f"{path}.fieldPath", name, why)
        return
    # The old name of a field is taken for the new one.
    name = "spec.nodeName" if name == "spec.host" else name
    subscript = _SUBSCRIPT.fullmatch(name)
    if subscript is None and name not in _KNOWN_FIELDS:
        why = f"error converting fieldPath: field label not supported: {name}"
        found.invalid(f"{path}.fieldPath", name, why)
    elif subscript is None:
        if name not in choices:
            found.unsupported(f"{path}.fieldPath", name, choices)
    else:
        parent, key = subscript["path"], subscript["key"]
        if parent not in ("metadata.annotations", "metadata.labels"):
            why = f"error converting fieldPath: field label does not support subscript: {name}"
            found.invalid(f"{path}.fieldPath", name, why)
        else:
            shown = key.lower() if parent == "metadata.annotations" else key
            found.each(path, shown, names.qualified(shown))


def resource_field(
    found: Found, path: str, ref: v1.ResourceFieldSelector, *, needs_container: bool = False
) -> None:
    """An amount some container asks for."""
    name = ref.resource
    if needs_container and not ref.containerName:
        found.required(f"{path}.containerName")
    elif not name:
        found.required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        found.unsupported(f"{path}.resource", name, _RESOURCES)
    _divisor(found, f"{path}.divisor", name, resources.quantity(ref.divisor))


def _divisor(found: Found, path: str, name: str, divisor: Quantity) -> None:
    if not divisor.nanos:
        return
    what = name.partition(".")[2]
    if what == "cpu":
        if str(divisor) not in ("1m", "1"):
            found.invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource")
        return
    called = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(what)
    called = "hugepages" if name.startswith(_HUGE_PAGES) else called
    if called is not None and str(divisor) not in _SIZES:
        found.invalid(
            path,
            name,
            f"only divisor's values {', '.join(_SIZES)} are supported with the {called} resource",
        )


def _key(found: Found, path: str, reference: v1.ConfigMapKeySelector | v1.SecretKeySelector) -> None:
    found.each(f"{path}.name", reference.name, names.subdomain(reference.name))
    if not reference.key:
        found.required(f"{path}.key")
    else:
        found.each(f"{path}.key", reference.key, names.config_key(reference.key))


def _file_key(found: Found, path: str, reference: v1.FileKeySelector) -> None:
    if not reference.key:
        found.required(f"{path}.key")
    else:
        found.each(f"{path}.key", reference.key, names.environment(reference.key))
    if not reference.volumeName:
        found.required(f"{path}.volumeName")
    else:
        found.each(f"{path}.volumeName", reference.volumeName, names.label(reference.volumeName))
    if not reference.path:
        found.required(f"{path}.path")
    else:
        names.no_backsteps(found, f"{path}.path", reference.path)


def sources(found: Found, path: str, given: tuple[v1.EnvFromSource, ...]) -> None:
    """All variables of a ConfigMap or a Secret."""
    for i, source in enumerate(given):
        at = f"{path}[{i}]"
        if source.prefix:
            found.each(f"{at}.prefix", source.prefix, names.environment(source.prefix))
        count = 0
        for name in ("configMapRef", "secretRef"):
            reference = getattr(source, name)
            if reference is None:
                continue
            count += 1
            if not reference.name:
                found.required(f"{at}.{name}.name")
            else:
                whys = names.prefix(names.subdomain, reference.name)
                found.each(f"{at}.{name}.name", reference.name, whys)
        if not count:
            found.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif count > 1:
            found.invalid(path, "", "may not have more than one field specified at a time")


def file_volumes(
    found: Found,
    path: str,
    containers: tuple[v1.Container, ...],
    volumes: tuple[v1.Volume, ...],
) -> None:
    """Files that variables come from must be in a volume that begins empty."""
    for i, container in enumerate(containers):
        for j, variable in enumerate(container.env):
            if variable.valueFrom is None or variable.valueFrom.fileKeyRef is None:
                continue
            at = f"{path}[{i}].env[{j}].valueFrom.fileKeyRef.volumeName"
            name = variable.valueFrom.fileKeyRef.volumeName
            volume = next((volume for volume in reversed(volumes) if volume.name == name), None)
            if volume is None:
                found.missing(at, name)
            elif volume.emptyDir is None:
                found.invalid(at, name, "referenced volume must be of type emptyDir")
