"""Warnings about definitions and custom resources: upstream's, and those about features this server lacks."""

from __future__ import annotations

from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition, JSONSchemaProps
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.go_quote import quote
from steersman.api.label_syntax import key_errors
from steersman.server.crd import formats
from steersman.server.crd.structural_schema import every_schema
from steersman.server.discovery.documents import version_order

_STANDARD = ("orphan", "foregroundDeletion", "kubernetes")


def warnings(definition: CustomResourceDefinition, old: CustomResourceDefinition | None = None) -> list[str]:
    """The warnings about a definition; for an update, only those that are new."""
    known = frozenset(_warnings(old)) if old is not None else frozenset()
    return [text for text in _warnings(definition) if text not in known]


def _warnings(definition: CustomResourceDefinition) -> list[str]:
    found: dict[str, None] = {}
    for version in definition.spec.versions:
        schema = version.schema.openAPIV3Schema if version.schema is not None else None
        for each in every_schema(schema) if schema is not None else ():
            found.update(dict.fromkeys(_of_schema(each)))
    return list(found)


def _of_schema(schema: JSONSchemaProps) -> list[str]:
    found = []
    if schema.format and not formats.is_supported(schema.format, schema.type):
        found.append(f"unrecognized format {quote(schema.format)}")
    return found


def deprecation(definition: CustomResourceDefinition, version: str) -> str:
    """The deprecation warning of a version; empty if it is not deprecated."""
    spec = definition.spec
    version_spec = next((each for each in spec.versions if each.name == version), None)
    if version_spec is None or not version_spec.deprecated:
        return ""
    if version_spec.deprecationWarning is not None:
        return version_spec.deprecationWarning
    text = f"{spec.group}/{version} {spec.names.kind} is deprecated"
    better = sorted(
        (
            each.name
            for each in spec.versions
            if each.served and not each.deprecated and version_order(each.name) < version_order(version)
        ),
        key=version_order,
    )
    return f"{text}; use {spec.group}/{better[0]} {spec.names.kind}" if better else text


def finalizers(new: ObjectMeta, old: ObjectMeta | None = None) -> list[str]:
    """The warnings about new finalizers of a custom resource that are not domain-qualified."""
    found = []
    for name in sorted(new.finalizers):
        if old is not None and name in old.finalizers:
            continue
        head = f"metadata.finalizers: {quote(name)}:"
        found += [f"{head} {wrong}" for wrong in key_errors(name)]
        if "/" not in name and name not in _STANDARD:
            form = "finalizer name including a path (/)" if "." in name else "finalizer name"
            found.append(
                f"{head} prefer a domain-qualified {form} to avoid accidental conflicts with other finalizer writers"
            )
    return list(dict.fromkeys(found))
