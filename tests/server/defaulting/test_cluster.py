"""Defaults of the cluster's configuration."""

from __future__ import annotations

from steersman.api.generated.apiregistration_v1 import APIService, APIServiceSpec, ServiceReference
from steersman.server.defaulting import default_for


def test_an_aggregated_api_is_asked_at_the_port_of_tls_unless_it_says_otherwise() -> None:
    fill = default_for("apiregistration.k8s.io", "APIService")

    def port(service: ServiceReference | None) -> int | None:
        filled = fill(APIService(spec=APIServiceSpec(service=service))).spec.service
        return None if filled is None else filled.port

    assert port(ServiceReference(name="s", namespace="n")) == 443
    assert port(ServiceReference(name="s", namespace="n", port=8443)) == 8443
    assert port(None) is None
