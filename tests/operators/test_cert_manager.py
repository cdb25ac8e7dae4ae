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

from tests.harness.child_process import Child
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
KEY = {"privateKey": {"algorithm": "ECDSA", "size": 256}}
REGISTRATION, API = "admissionregistration.k8s.io/v1", "cert-manager.io/v1"

pytestmark = needs(
    "cert-manager",
    "bin/helm",
    "bin/cert-manager-webhook",
    "bin/cert-manager-cainjector",
    "bin/cert-manager-controller",
)


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


def start_controller(running: Plane) -> Child:
    return running.start(
        "cert-manager-controller",
        "--leader-election-namespace=kube-system",
        f"--cluster-resource-namespace={NAMESPACE}",
        f"--metrics-listen-address=127.0.0.1:{free_port()}",
        f"--internal-healthz-listen-address=127.0.0.1:{free_port()}",
        account=f"{NAMESPACE}/cert-manager",
    )


def is_ready(running: Plane, name: str) -> bool:
    return has_condition(running.get(API, "Certificate", name), "Ready")


def names(certificate: str) -> list[str]:
    """The DNS names of a certificate, as a Secret has it."""
    issued = x509.load_pem_x509_certificate(base64.b64decode(certificate))
    found = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return found.get_values_for_type(x509.DNSName)


def test_a_certificate_is_issued_by_an_authority_it_made_itself(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        controller = start_controller(running)
        with pytest.raises(DynamicApiError, match=r"webhook.cert-manager.io.* denied the request"):
            running.create(certificate("nameless", "first"))
        running.create(certificate("root", "first", isCA=True, commonName="root", **KEY))
        running.create(issuer("root", ca={"secretName": "root"}))
        running.create(certificate("web", "root", dnsNames=["web.example"], **KEY))
        running.until(lambda: is_ready(running, "web"), "it is issued", controller)
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
        assert names(data["tls.crt"]) == ["web.example"]


def test_a_certificate_is_issued_anew_when_its_secret_is_lost_its_names_change_or_somebody_asks(
    tmp_path: Path,
) -> None:
    with installed(tmp_path) as running:
        controller = start_controller(running)

        def anew(revision: int, why: str) -> str:
            """The certificate of a revision, once it is issued."""

            def issued() -> bool:
                found = running.get(API, "Certificate", "web")
                is_done = has_condition(found, "Ready") and not has_condition(found, "Issuing")
                return is_done and found["status"].get("revision") == revision

            running.until(issued, why, controller)
            certificate: str = running.get("v1", "Secret", "web")["data"]["tls.crt"]
            return certificate

        running.create(certificate("web", "first", dnsNames=["web.example"], **KEY))
        certificates = [anew(1, "it is issued")]
        running.delete("v1", "Secret", "web")
        certificates.append(anew(2, "it is issued anew, for the Secret was deleted"))
        running.patch(API, "Certificate", "web", {"spec": {"dnsNames": ["www.example"]}})
        certificates.append(anew(3, "it is issued for other names"))
        assert names(certificates[-1]) == ["www.example"]
        asked = running.get(API, "Certificate", "web")
        asked["status"]["conditions"].append(  # as `cmctl renew` does it
            {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "by hand"}
        )
        running.kind(asked).status.replace(body=asked, namespace="default")
        certificates.append(anew(4, "it is renewed, for that was asked for"))
        assert len(set(certificates)) == 4
        running.until(
            lambda: len(running.list(API, "CertificateRequest")) == 1, "earlier requests are gone", controller
        )
        (request,) = running.list(API, "CertificateRequest")
        with pytest.raises(DynamicApiError, match="cannot change spec after creation"):
            running.patch(API, "CertificateRequest", request["metadata"]["name"], {"spec": {"isCA": True}})


def test_an_ingress_gets_a_certificate_and_a_webhook_configuration_its_authority(tmp_path: Path) -> None:
    with installed(tmp_path) as running:
        controller = start_controller(running)
        rule = {
            "path": "/",
            "pathType": "Prefix",
            "backend": {"service": {"name": "x", "port": {"number": 80}}},
        }
        running.create(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "Ingress",
                "metadata": {"name": "shop", "annotations": {"cert-manager.io/issuer": "first"}},
                "spec": {
                    "tls": [{"hosts": ["shop.example"], "secretName": "shop-tls"}],
                    "rules": [{"host": "shop.example", "http": {"paths": [rule]}}],
                },
            }
        )
        running.until(lambda: is_ready(running, "shop-tls"), "the Ingress has a certificate", controller)
        (owner,) = running.get(API, "Certificate", "shop-tls")["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Ingress", "shop")
        running.create(
            {
                "apiVersion": REGISTRATION,
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {
                    "name": "mine",
                    "annotations": {"cert-manager.io/inject-ca-from": "default/shop-tls"},
                },
                "webhooks": [
                    {
                        "name": "mine.shop.example",
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "clientConfig": {"service": {"name": "x", "namespace": "default"}},
                    }
                ],
            }
        )
        authority = running.get("v1", "Secret", "shop-tls")["data"]["ca.crt"]

        def injected() -> bool:
            found = running.get(REGISTRATION, "ValidatingWebhookConfiguration", "mine", None)
            return bool(found["webhooks"][0]["clientConfig"].get("caBundle") == authority)

        running.until(injected, "the authority is in the configuration", running.programs[1])
        running.delete("networking.k8s.io/v1", "Ingress", "shop")
        running.until(
            lambda: not running.get(API, "Certificate", "shop-tls"),
            "its certificate goes with it",
            controller,
        )
        assert running.get("v1", "Secret", "shop-tls"), "cert-manager leaves Secrets where they are"
