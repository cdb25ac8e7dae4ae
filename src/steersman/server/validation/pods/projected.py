"""Files that are projected into a pod: several sources in one volume."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods import environment
from steersman.server.validation.volumes import mode

_MINUTES = 10 * 60
_CLASH = "conflicting duplicate paths"


def key_to_path(errors: FieldErrors, path: str, item: v1.KeyToPath) -> None:
    """A key that becomes a file."""
    if not item.key:
        errors.required(f"{path}.key")
    if not item.path:
        errors.required(f"{path}.path")
    names.local(errors, f"{path}.path", item.path)
    mode(errors, f"{path}.mode", item.mode)


def downward_file(errors: FieldErrors, path: str, file: v1.DownwardAPIVolumeFile) -> None:
    """A fact about the pod that becomes a file."""
    if not file.path:
        errors.required(f"{path}.path")
    names.local(errors, f"{path}.path", file.path)
    if file.fieldRef is not None:
        environment.field(errors, f"{path}.fieldRef", file.fieldRef, environment.VOLUME_FIELDS)
        if file.resourceFieldRef is not None:
            both = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.invalid(path, "resource", both)
    elif file.resourceFieldRef is not None:
        environment.resource_field(
            errors, f"{path}.resourceFieldRef", file.resourceFieldRef, needs_container=True
        )
    else:
        errors.required(path, "one of fieldRef and resourceFieldRef is required")
    mode(errors, f"{path}.mode", file.mode)


def projected(errors: FieldErrors, path: str, source: v1.ProjectedVolumeSource) -> None:
    mode(errors, f"{path}.defaultMode", source.defaultMode)
    taken: set[str] = set()
    for i, one in enumerate(source.sources or ()):
        _projection(errors, path, f"{path}.sources[{i}]", one, taken)


def _projection(errors: FieldErrors, path: str, at: str, one: v1.VolumeProjection, taken: set[str]) -> None:
    def file(name: str, shown: str) -> None:
        """No two sources may make the same file."""
        if name and name in taken:
            errors.invalid(path, shown, _CLASH)
        taken.add(name)

    count = 0
    for name in ("secret", "configMap"):
        source: v1.SecretProjection | v1.ConfigMapProjection | None = getattr(one, name)
        if source is None:
            continue
        count += 1
        if not source.name:
            errors.required(f"{at}.{name}.name")
        for i, item in enumerate(source.items):
            key_to_path(errors, f"{at}.{name}.items[{i}]", item)
            file(item.path, source.name)
    if one.downwardAPI is not None:
        count += 1
        for downward in one.downwardAPI.items:
            downward_file(errors, f"{at}.downwardAPI", downward)
            file(downward.path, downward.path)
    if one.serviceAccountToken is not None:
        count += 1
        _token(errors, path, f"{at}.serviceAccountToken", one.serviceAccountToken)
    if count > 1:
        errors.forbidden(at, "may not specify more than 1 volume type per source")


def _token(errors: FieldErrors, volume: str, path: str, source: v1.ServiceAccountTokenProjection) -> None:
    seconds = source.expirationSeconds
    if seconds is not None and seconds < _MINUTES:
        short = "may not specify a duration less than 10 minutes"
        errors.invalid(f"{path}.expirationSeconds", seconds, short)
    if seconds is not None and seconds > 1 << 32:
        long = "may not specify a duration larger than 2^32 seconds"
        errors.invalid(f"{path}.expirationSeconds", seconds, long)
    if not source.path:
        errors.required(f"{volume}.path")
    else:
        names.local(errors, f"{volume}.path", source.path)
