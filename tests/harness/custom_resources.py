"""CustomResourceDefinitions, for tests that need any custom kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.scheme import Kind

ANYTHING: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of objects whose fields do not matter."""


def definition(kind: Kind[Any], schema: Mapping[str, Any] = ANYTHING, **version: Any) -> dict[str, Any]:
    """The definition of a custom kind with one version, whose other fields are in ``version``."""
    served = {"name": kind.version, "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}, **version}],
        },
    }


WIDGETS: Kind[dict[str, Any]] = Kind("example.com", "v1", "Widget", "widgets", True, dict)
DEFINITION = definition(WIDGETS)
WIDGET: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "one"},
    "spec": {"big": 7},
}
