"""CustomResourceDefinitions: names, versions, and that there is a schema for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from steersman.api.generated import apiextensions_v1 as extensions
from steersman.server.validation import metadata as meta
from steersman.server.validation import schemas, text
from steersman.server.validation.found import Found, Verbatim, fields, json, listed
from steersman.server.validation.webhooks import client

_APPROVED = "api-approved.kubernetes.io"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_REVIEWS = ("v1", "v1beta1")
_SCOPES = ("Cluster", "Namespaced")


def create(found: Found, obj: extensions.CustomResourceDefinition) -> None:
    full = f"{obj.spec.names.plural}.{obj.spec.group}"

    def rule(name: str) -> tuple[str, ...]:
        errors = text.subdomain(name)
        return errors if name == full else (*errors, 'must be spec.names.plural+"."+spec.group')

    meta.check(found, obj.metadata, rule, namespaced=False, kube=False)
    _definition(found, obj, None)


def update(
    found: Found,
    new: extensions.CustomResourceDefinition,
    old: extensions.CustomResourceDefinition,
) -> None:
    """Once served, a definition keeps its kind and its scope; its group and plural it keeps always."""
    meta.check_update(found, new.metadata, old.metadata, kube=False)
    _definition(found, new, old)


def status(
    found: Found,
    new: extensions.CustomResourceDefinition,
    old: extensions.CustomResourceDefinition,
) -> None:
    meta.check_update(found, new.metadata, old.metadata, kube=False)
    _names(found, "status.acceptedNames", new.status.acceptedNames)


def _definition(
    found: Found,
    obj: extensions.CustomResourceDefinition,
    old: extensions.CustomResourceDefinition | None,
) -> None:
    _spec(found, obj.spec)
    if old is not None:
        was, now = old.spec, obj.spec
        if any(c.type == "Established" and c.status == "True" for c in old.status.conditions or ()):
            found.changed("spec.scope", now.scope, was.scope)
            found.changed("spec.names.kind", now.names.kind, was.names.kind)
        found.changed("spec.group", now.group, was.group)
        found.changed("spec.names.plural", now.names.plural, was.names.plural)
    _names(found, "status.acceptedNames", obj.status.acceptedNames)
    _stored(found, "status.storedVersions", obj)
    if old is None or _approval(obj)[0] != _approval(old)[0]:
        _approved(found, obj)
    if obj.spec.preserveUnknownFields and (old is None or not old.spec.preserveUnknownFields):
        found.invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        )


def _spec(found: Found, spec: extensions.CustomResourceDefinitionSpec) -> None:
    if not spec.group:
        found.required("spec.group")
    elif errors := text.subdomain(spec.group):
        found.invalid("spec.group", spec.group, ",".join(errors))
    elif "." not in spec.group:
        found.invalid("spec.group", spec.group, "should be a domain with at least one dot")
    found.choose("spec.scope", spec.scope, _SCOPES)
    versions = spec.versions
    for i, version in enumerate(versions):
        if version.schema is None or version.schema.openAPIV3Schema is None:
            found.required(f"spec.versions[{i}].schema.openAPIV3Schema")
    shared = {
        name for name in ("schema", "subresources", "additionalPrinterColumns") if _same(versions, name)
    }
    for i, version in enumerate(versions):
        path = f"spec.versions[{i}]"
        if errors := text.label_1035(version.name):
            found.invalid(f"{path}.name", version.name, ",".join(errors))
        _deprecation(found, f"{path}.deprecationWarning", version)
        _parts(found, path, version, [name for name in _PATHS if name not in shared])
    shown = listed(_version(version, shared) for version in versions) if versions else Verbatim("null")
    names = [version.name for version in versions]
    if len(dict.fromkeys(names)) != len(names):
        found.invalid("spec.versions", shown, "must contain unique version names")
    if sum(version.storage for version in versions) != 1:
        one = "must have exactly one version marked as storage version"
        found.invalid("spec.versions", shown, one)
    for name in ("plural", "singular", "kind", "listKind"):
        if not getattr(spec.names, name):
            found.required(f"spec.names.{name}")
    _names(found, "spec.names", spec.names)
    if versions:
        _parts(found, "spec", versions[0], [name for name in _PATHS if name in shared])
    if spec.conversion is not None:
        _conversion(found, "spec.conversion", spec.conversion)


_PATHS = {"schema": "validation", "subresources": "subresources", "additionalPrinterColumns": ""}


def _same(versions: Sequence[extensions.CustomResourceDefinitionVersion], name: str) -> bool:
    """Whether all versions say the same: the real server then says it of the definition as a whole."""
    values = [getattr(version, name) for version in versions]
    return bool(values and values[0]) and all(value == values[0] for value in values)


def _parts(
    found: Found, path: str, version: extensions.CustomResourceDefinitionVersion, names: Sequence[str]
) -> None:
    """What versions have one by one, or all together."""
    if "schema" in names and version.schema is not None:
        at = f"{path}.validation" if path == "spec" else f"{path}.schema"
        has_status = version.subresources is not None and version.subresources.status is not None
        schemas.check(found, f"{at}.openAPIV3Schema", version.schema.openAPIV3Schema, has_status=has_status)
    if "subresources" in names and version.subresources is not None:
        _scale(found, f"{path}.subresources", version.subresources.scale)
    if "additionalPrinterColumns" in names:
        for i, column in enumerate(version.additionalPrinterColumns):
            _column(found, f"{path}.additionalPrinterColumns[{i}]", column)


def _version(version: extensions.CustomResourceDefinitionVersion, shared: set[str]) -> Verbatim:
    """A version as the real server shows it, without what it has in common with the others."""

    def own(name: str) -> Any:
        value = getattr(version, name)
        return None if name in shared or not value else Verbatim(json(value))

    return fields(
        Name=version.name,
        Served=version.served,
        Storage=version.storage,
        Deprecated=version.deprecated,
        DeprecationWarning=version.deprecationWarning,
        Schema=own("schema"),
        Subresources=own("subresources"),
        AdditionalPrinterColumns=own("additionalPrinterColumns"),
        SelectableFields=own("selectableFields"),
    )


def _deprecation(found: Found, path: str, version: extensions.CustomResourceDefinitionVersion) -> None:
    warning = version.deprecationWarning
    if warning is None:
        return
    if not version.deprecated:
        found.invalid(path, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > 256:
        found.invalid(path, warning, "must be <= 256 characters long")
    if not warning:
        found.invalid(path, warning, "must not be an empty string")
    for i, char in enumerate(warning):
        if not char.isprintable():
            says = "must only contain printable UTF-8 characters; non-printable character found at index"
            found.invalid(path, warning, f"{says} {i}")
            break


def _scale(found: Found, path: str, scale: extensions.CustomResourceSubresourceScale | None) -> None:
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        at, value = f"{path}.scale.{name}", getattr(scale, name)
        if not value:
            found.required(at)
        elif _json_path(found, at, value) and not value.startswith(root):
            found.invalid(at, value, f"should be a json path under {root.removesuffix('.')}")
    value = scale.labelSelectorPath
    if value:
        at = f"{path}.scale.labelSelectorPath"
        if _json_path(found, at, value) and not value.startswith((".spec.", ".status.")):
            found.invalid(at, value, "should be a json path under either .spec or .status")


def _json_path(found: Found, path: str, value: str) -> bool:
    if value.startswith("."):
        return True
    found.invalid(path, value, "must be a simple json path starting with .")
    return False


def _column(found: Found, path: str, column: extensions.CustomResourceColumnDefinition) -> None:
    if not column.name:
        found.required(f"{path}.name")
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.type:
        found.required(f"{path}.type", types)
    elif column.type not in _COLUMN_TYPES:
        found.invalid(f"{path}.type", column.type, types)
    if column.format and column.format not in _COLUMN_FORMATS:
        formats = f"must be one of {','.join(_COLUMN_FORMATS)}"
        found.invalid(f"{path}.format", column.format, formats)
    if not column.jsonPath:
        found.required(f"{path}.JSONPath")
    else:
        _json_path(found, f"{path}.JSONPath", column.jsonPath)


def _names(found: Found, path: str, names: extensions.CustomResourceDefinitionNames) -> None:
    mixed = "may have mixed case, but should otherwise match: "
    for name in ("plural", "singular"):
        value = getattr(names, name)
        if value and (errors := text.label_1035(value)):
            found.invalid(f"{path}.{name}", value, ",".join(errors))
    for name in ("kind", "listKind"):
        value = getattr(names, name)
        if value and (errors := text.label_1035(value.lower())):
            found.invalid(f"{path}.{name}", value, mixed + ",".join(errors))
    for i, short in enumerate(names.shortNames):
        if errors := text.label_1035(short):
            found.invalid(f"{path}.shortNames[{i}]", short, ",".join(errors))
    if names.kind and names.kind == names.listKind:
        found.invalid(f"{path}.listKind", names.listKind, "kind and listKind may not be the same")
    for i, category in enumerate(names.categories):
        if errors := text.label_1035(category):
            found.invalid(f"{path}.categories[{i}]", category, ",".join(errors))


def _conversion(found: Found, path: str, conversion: extensions.CustomResourceConversion) -> None:
    found.choose(f"{path}.strategy", conversion.strategy, ("None", "Webhook"))
    hook = conversion.webhook
    config = None if hook is None else hook.clientConfig
    versions = () if hook is None else hook.conversionReviewVersions or ()
    if conversion.strategy != "Webhook":
        says = "should not be set when strategy is not set to Webhook"
        if config is not None:
            found.forbidden(f"{path}.webhookClientConfig", says)
        if versions:
            found.forbidden(f"{path}.conversionReviewVersions", says)
        return
    if config is None:
        needs = "required when strategy is set to Webhook"
        found.required(f"{path}.webhookClientConfig", needs)
    else:
        client(found, f"{path}.webhookClientConfig", config)
    at = f"{path}.conversionReviewVersions"
    if not versions:
        found.required(at)
        return
    for i, version in enumerate(versions):
        if version in versions[:i]:
            found.invalid(f"{at}[{i}]", version, "duplicate version")
            continue
        found.each(f"{at}[{i}]", version, text.label_1035(version))
    if not any(version in _REVIEWS for version in versions):
        found.invalid(at, versions, f"must include at least one of {', '.join(_REVIEWS)}")


def _stored(found: Found, path: str, obj: extensions.CustomResourceDefinition) -> None:
    stored = obj.status.storedVersions or ()
    if not stored:
        found.invalid(path, Verbatim("null"), "must have at least one stored version")
        return
    names = [version.name for version in obj.spec.versions]
    for version in obj.spec.versions:
        if version.storage and version.name not in stored:
            found.invalid(path, stored, f"must have the storage version {version.name}")
    for i, name in enumerate(stored):
        if name not in names:
            found.invalid(
                f"{path}[{i}]",
                name,
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions",
            )


# -- groups that belong to the community ------------------------------------------------------


def _approval(obj: extensions.CustomResourceDefinition) -> tuple[str, str]:
    said = obj.metadata.annotations.get(_APPROVED, "")
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    must = f'protected groups must have approval annotation "{_APPROVED}"'
    if not said:
        return "missing", f"{must}, {see}"
    if said.startswith("unapproved"):
        return "bypassed", ""
    try:
        parts = urlsplit(said)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme and parts.netloc:
        return "approved", ""
    return "invalid", f'{must} with either a URL or a reason starting with "unapproved", {see}'


def _approved(found: Found, obj: extensions.CustomResourceDefinition) -> None:
    group = f".{obj.spec.group}"
    if not group.endswith((".k8s.io", ".kubernetes.io")):
        return
    state, why = _approval(obj)
    path = f"metadata.annotations[{_APPROVED}]"
    if state == "missing":
        found.required(path, why)
    elif state == "invalid":
        found.invalid(path, obj.metadata.annotations[_APPROVED], why)
