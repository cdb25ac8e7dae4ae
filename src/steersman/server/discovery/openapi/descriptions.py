"""Descriptions of definitions, which ``kubectl explain`` shows.

The fields that every object has are described here, in our own words. Those of all other built-in kinds are upstream's, from
the package kubernetes-validate where it is installed (``pip install steersman[explain]``). They are read with the first
request for OpenAPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

VERSION = "v1.36"
"""The version of Kubernetes whose descriptions are read."""

TYPE_META = {
    "apiVersion": "The version of the API that this object is written in, such as v1 or apps/v1.",
    "kind": "The kind of this object, in CamelCase.",
}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
METADATA = "The object's identity and what is known about it: name, namespace, labels, owners."

_OWN: Mapping[str, Mapping[str, str]] = {
    f"{_META}.ObjectMeta": {
        "": "Metadata that every stored object has.",
        "annotations": "Values by key that tools keep with the object. They cannot be selected by.",
        "creationTimestamp": "The time at which the server created the object, in UTC. Set by the server.",
        "deletionGracePeriodSeconds": "Seconds that the object is given to end before it is removed. Set by the server.",
        "deletionTimestamp": "The time after which the object is removed, once its finalizers are gone. Set by the server.",
        "finalizers": "Names of steps that must be taken before the object is removed; each step removes its name.",
        "generateName": "A prefix of which the server makes a name, where no name is given.",
        "generation": "Counts changes of the desired state. Set by the server.",
        "labels": "Values by key that objects are selected by.",
        "managedFields": "Which manager last set which fields. Kept by the server for server-side apply.",
        "name": "The name of the object, unique in its namespace for its kind. It cannot be changed.",
        "namespace": "The namespace of the object; empty for kinds that belong to the whole cluster.",
        "ownerReferences": "The objects that this one depends on. It is deleted when all of them are gone.",
        "resourceVersion": "The version of the stored object. Clients pass it back unchanged.",
        "selfLink": "No longer set.",
        "uid": "Identifies this object among all that ever existed. Set by the server.",
    },
    f"{_META}.ListMeta": {
        "": "Metadata that every list has.",
        "continue": "A token for the next page; empty on the last one. It expires after some minutes.",
        "remainingItemCount": "How many objects follow this page, where the server knows.",
        "resourceVersion": "The version that the list shows; a watch can begin there.",
        "selfLink": "No longer set.",
    },
    f"{_META}.OwnerReference": {
        "": "Names an object that owns this one.",
        "apiVersion": "The version of the API of the owner.",
        "blockOwnerDeletion": "Whether foreground deletion of the owner waits for this object.",
        "controller": "Whether the owner manages this object. One owner at most does.",
        "kind": "The kind of the owner.",
        "name": "The name of the owner.",
        "uid": "The uid of the owner.",
    },
    f"{_META}.LabelSelector": {
        "": "Selects objects by their labels. All requirements must hold; an empty selector selects everything.",
        "matchExpressions": "Requirements by operator.",
        "matchLabels": "Labels that must have these values.",
    },
}


def describe(definitions: Mapping[str, dict[str, Any]], version: int) -> dict[str, dict[str, Any]]:
    """Definitions with descriptions, where there are any. ``version`` is that of OpenAPI."""
    installed = _installed()
    return {
        name: _described(name, each, installed.get(name, {}), version) for name, each in definitions.items()
    }


def _described(
    name: str, definition: dict[str, Any], upstream: Mapping[str, Any], version: int
) -> dict[str, Any]:
    own = _OWN.get(name, {})
    properties = definition.get("properties", {})
    texts = {key: each.get("description", "") for key, each in upstream.get("properties", {}).items()}
    if (
        "apiVersion" in properties
        and "kind" in properties
        and "x-kubernetes-group-version-kind" in definition
    ):
        texts = {**texts, **TYPE_META}
        if "metadata" in properties:
            texts = {"metadata": METADATA, **texts}
    texts |= own
    described = {
        key: _with_text(schema, texts[key], version) if texts.get(key) else schema
        for key, schema in properties.items()
    }
    text = own.get("") or upstream.get("description", "")
    result = {"description": text, **definition} if text else dict(definition)
    return {**result, "properties": described} if described else result


def _with_text(schema: dict[str, Any], text: str, version: int) -> dict[str, Any]:
    if "$ref" in schema and version == 3:
        # A reference of v3 has no siblings.
        return {"allOf": [schema], "description": text}
    return {"description": text, **schema}


class _Definitions(msgspec.Struct):
    definitions: dict[str, dict[str, Any]] = msgspec.field(name="$defs")


def _installed() -> Mapping[str, Mapping[str, Any]]:
    """The definitions of the installed package; none where there is no such package, or not this version."""
    from importlib.resources import files

    try:
        schemas = files("kubernetes_validate") / "kubernetes-json-schema"
        found = sorted(
            each.name
            for each in schemas.iterdir()
            if each.name.startswith(VERSION) and each.name.endswith("-local")
        )
        raw = (schemas / found[-1] / "_definitions.json").read_bytes()
        return msgspec.json.decode(raw, type=_Definitions).definitions
    except (ImportError, OSError, IndexError, msgspec.MsgspecError):
        return {}
