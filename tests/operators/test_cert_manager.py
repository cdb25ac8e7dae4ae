"""cert-manager, installed by its chart: its webhook makes its own certificate, its injector
makes that trusted, its controller issues others. Each has the rights of its own ServiceAccount."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from kubernetes.dynamic.exceptions import DynamicApiError, InternalServerError

from tests.harness.operators import (
    Document,
    Plane,
    directory,
    free_port,
    has_condition,
    needs,
    plane,
)

NAME, NAMESPACE = "cert-manager-webhook", "cert-manager"
REGISTRATION, API = "admissionregistration.k8s.io/v1", "cert-manager.io/v1"


def chart(where: Path) -> Path:
    """Its chart, which has no version before it is released."""
    copied = where / "cert-manager"
    shutil.copytree(directory() / "cert-manager/deploy/charts/cert-manager", copied)
    (copied / "Chart.yaml").write_text(
        yaml.safe_dump(
            {"apiVersion": "v2", "name": "cert-manager", "version": "1.20.3", "appVersion": "1.20.3"}
        )
    )
    return copied


@contextmanager
def installed(where: Path) -> Iterator[Plane]:
    """A plane with the definitions, and with the webhook and the injector at work."""
    port = free_port()
    with plane(where, f"--webhook-address={NAMESPACE}/{NAME}=127.0.0.1:{port}") as running:
        values = ("--set=crds.enabled=true", f"--namespace={NAMESPACE}", "--create-namespace")
        running.helm("install", "cert-manager", str(chart(where)), *values, "--wait", "--timeout=60s")
        webhook = running.start(
            "cert-manager-webhook",
            f"--secure-port={port}",
            f"--healthz-port={free_port()}",
            "--metrics-listen-address=0",
            f"--dynamic-serving-ca-secret-namespace={NAMESPACE}",
            f"--dynamic-serving-ca-secret-name={NAME}-ca",
            f"--dynamic-serving-dns-names={NAME}.{NAMESPACE}.svc",
            account=f"{NAMESPACE}/{NAME}",
        )
        injector = running.start(
            "cert-manager-cainjector",
            "--leader-election-namespace=kube-system",
            "--metrics-listen-address=0",
            account=f"{NAMESPACE}/cert-manager-cainjector",
        )
        running.listening(port, webhook)
        for kind in ("Mutating", "Validating"):

            def trusted(kind: str = kind) -> bool:
                found = running.get(REGISTRATION, f"{kind}WebhookConfiguration", NAME, None)
                secret = running.get("v1", "Secret", f"{NAME}-ca", NAMESPACE)
                authority = secret.get("data", {}).get("ca.crt")
                return bool(authority) and found["webhooks"][0]["clientConfig"].get("caBundle") == authority

            running.until(trusted, f"the authority is in the {kind}WebhookConfiguration", injector)

        def serves() -> bool:
            # It listens before it has a certificate.
            try:
                running.create(issuer("first", selfSigned={}))
            except InternalServerError as error:
                if "tls: internal error" not in str(error):
                    raise
                return False
            return True

        running.until(serves, "the webhook serves", webhook)
        yield running


def issuer(name: str, **spec: Document) -> Document:
    return {"apiVersion": API, "kind": "Issuer", "metadata": {"name": name}, "spec": spec}


def certificate(name: str, by: str, **spec: object) -> Document:
    return {
        "apiVersion": API,
        "kind": "Certificate",
        "metadata": {"name": name},
        "spec": {"secretName": name, "issuerRef": {"name": by}, **spec},
    }


@needs(
    "cert-manager",
    "bin/helm",
    "bin/cert-manager-webhook",
    "bin/cert-manager-cainjector",
    "bin/cert-manager-controller",
)
def test_a_certificate_is_issued_by_an_authority_it_made_itself(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        controller = running.start(
            "cert-manager-controller",
            "--leader-election-namespace=kube-system",
            f"--cluster-resource-namespace={NAMESPACE}",
            f"--metrics-listen-address=127.0.0.1:{free_port()}",
            f"--internal-healthz-listen-address=127.0.0.1:{free_port()}",
            account=f"{NAMESPACE}/cert-manager",
        )
        with pytest.raises(DynamicApiError, match=r"webhook.cert-manager.io.* denied the request"):
            running.create(certificate("nameless", "first"))
        key = {"privateKey": {"algorithm": "ECDSA", "size": 256}}
        running.create(certificate("root", "first", isCA=True, commonName="root", **key))
        running.create(issuer("root", ca={"secretName": "root"}))
        running.create(certificate("web", "root", dnsNames=["web.example"], **key))
        running.until(
            lambda: has_condition(running.get(API, "Certificate", "web"), "Ready"), "it is issued", controller
        )
        (request,) = [
            each
            for each in running.list(API, "CertificateRequest")
            if each["spec"]["issuerRef"]["name"] == "root"
        ]
        assert has_condition(request, "Approved")
        data = running.get("v1", "Secret", "web")["data"]
        issued, root = (
            x509.load_pem_x509_certificate(base64.b64decode(data[each])) for each in ("tls.crt", "ca.crt")
        )
        issued.verify_directly_issued_by(root)
        names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["web.example"]
