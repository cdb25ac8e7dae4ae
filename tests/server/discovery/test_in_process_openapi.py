"""OpenAPI documents for clients in the same process."""

from __future__ import annotations

import pytest

from steersman.api.errors import NotFound
from steersman.testing import Cluster

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gizmo, plural: gizmos}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


def test_every_document_that_is_listed_can_be_read(cluster: Cluster) -> None:
    listed = cluster.run(cluster.client.document("/openapi/v3"))["paths"]
    assert "api/v1" in listed
    for name in listed:
        document = cluster.run(cluster.client.document(f"/openapi/v3/{name}"))
        assert document["openapi"] == "3.0.0"


def test_a_custom_resource_is_described_as_soon_as_it_is_there(cluster: Cluster) -> None:
    path = "/openapi/v3/apis/example.com/v1"
    with pytest.raises(NotFound):
        cluster.run(cluster.client.document(path))
    cluster.apply(CRD)
    cluster.settle()
    assert "com.example.v1.Gizmo" in cluster.run(cluster.client.document(path))["components"]["schemas"]
    cluster.delete("CustomResourceDefinition", "gizmos.example.com")
    cluster.settle()
    with pytest.raises(NotFound):
        cluster.run(cluster.client.document(path))


@pytest.mark.parametrize("path", ["/", "/openapi/v2", "/openapi/v3/", "/openapi/v3/apis/nowhere/v1", "/api"])
def test_what_is_not_said_is_not_found(cluster: Cluster, path: str) -> None:
    with pytest.raises(NotFound):
        cluster.run(cluster.client.document(path))
