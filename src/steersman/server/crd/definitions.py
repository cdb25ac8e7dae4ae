"""Defaulting and validation of CustomResourceDefinitions."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api import go_base64
from steersman.api.generated.apiextensions_v1 import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionVersion,
)
from steersman.server import status_errors
from steersman.server.crd import spec_validation
from steersman.server.crd.conditions import is_true, validate_approval
from steersman.server.defaulting.missing_fields import default_if_none, map_optional, put
from steersman.server.status_errors import FieldError
from steersman.server.validation import metadata
from steersman.server.validation.field_errors import FieldErrors, Verbatim
from steersman.server.validation.names import dns1123_subdomain

# -- defaults ---------------------------------------------------------------------------------


def default_definition(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """The definition with default names, conversion strategy and webhook port."""
    spec = definition.spec
    names = spec.names
    if not names.singular:
        names = replace(names, singular=names.kind.lower())
    if not names.listKind and names.kind:
        names = replace(names, listKind=f"{names.kind}List")
    conversion = spec.conversion or CustomResourceConversion(strategy="None")
    webhook = conversion.webhook
    client = webhook.clientConfig if webhook is not None else None
    if webhook is not None and client is not None:
        try:
            filled = put(client, caBundle=go_base64.canonical(client.caBundle))
        except go_base64.CorruptBase64 as error:
            raise status_errors.MalformedObject("CustomResourceDefinition", "v1", str(error)) from None
        filled = put(
            filled, service=map_optional(client.service, lambda given: default_if_none(given, port=443))
        )
        if filled is not client:
            conversion = replace(conversion, webhook=replace(webhook, clientConfig=filled))
    if names is spec.names and conversion is spec.conversion:
        return definition
    return replace(definition, spec=replace(spec, names=names, conversion=conversion))


def with_stored_version(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """The definition with its storage version among its stored versions."""
    stored = definition.status.storedVersions or ()
    current = next((version.name for version in definition.spec.versions if version.storage), None)
    if current is None or current in stored:
        return definition
    return replace(definition, status=replace(definition.status, storedVersions=(*stored, current)))


# -- validation -------------------------------------------------------------------------------


def validate_definition(
    definition: CustomResourceDefinition, old: CustomResourceDefinition | None = None
) -> list[FieldError]:
    """Validates a new definition, or an update of an old one."""
    errors = FieldErrors()
    spec = definition.spec
    if old is None:
        expected = f"{spec.names.plural}.{spec.group}"

        def rule(name: str) -> tuple[str, ...]:
            wrong = dns1123_subdomain(name)
            return wrong if name == expected else (*wrong, 'must be spec.names.plural+"."+spec.group')

        metadata.validate_object_meta(errors, definition.metadata, rule, namespaced=False, kube=False)
    else:
        metadata.validate_object_meta_update(errors, definition.metadata, old.metadata, kube=False)
    spec_validation.validate_spec(spec, errors)
    if old is not None:
        _validate_immutable(definition, old, errors)
    spec_validation.validate_names(definition.status.acceptedNames, "status.acceptedNames", errors)
    _validate_stored_versions(definition.status.storedVersions or (), spec.versions, errors)
    validate_approval(definition, old, errors)
    if spec.preserveUnknownFields and not (old is not None and old.spec.preserveUnknownFields):
        errors.invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        )
    return errors


# -- updates ----------------------------------------------------------------------------------


def _validate_immutable(
    definition: CustomResourceDefinition, old: CustomResourceDefinition, errors: FieldErrors
) -> None:
    new, old_spec = definition.spec, old.spec
    if is_true(old, "Established"):
        errors.immutable("spec.scope", new.scope, old_spec.scope)
        errors.immutable("spec.names.kind", new.names.kind, old_spec.names.kind)
    errors.immutable("spec.group", new.group, old_spec.group)
    errors.immutable("spec.names.plural", new.names.plural, old_spec.names.plural)


def _validate_stored_versions(
    stored: tuple[str, ...], versions: tuple[CustomResourceDefinitionVersion, ...], errors: FieldErrors
) -> None:
    path = "status.storedVersions"
    if not stored:
        errors.invalid(path, Verbatim("null"), "must have at least one stored version")
        return
    for version in versions:
        if version.storage and version.name not in stored:
            errors.invalid(path, stored, f"must have the storage version {version.name}")
    known = [version.name for version in versions]
    for index, name in enumerate(stored):
        if name not in known:
            errors.invalid(
                f"{path}[{index}]",
                name,
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions",
            )


def validate_definition_status(
    definition: CustomResourceDefinition, old: CustomResourceDefinition
) -> list[FieldError]:
    """Validates a status update of a definition."""
    errors = FieldErrors()
    metadata.validate_object_meta_update(errors, definition.metadata, old.metadata, kube=False)
    spec_validation.validate_names(definition.status.acceptedNames, "status.acceptedNames", errors)
    return errors
