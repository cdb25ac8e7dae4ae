"""Operators and tools other people wrote in Go, unmodified, against ``steersman up``.

``STEERSMAN_OPERATORS`` names a directory with the programs in ``bin`` and beside it the source each was built from:
``kubebuilder``, ``jobset``, ``cert-manager`` and ``gateway-api``. Their manifests are read there. A test that lacks what it
needs is skipped, and says what that is.
"""

from __future__ import annotations

import base64
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config, dynamic
from kubernetes.dynamic.exceptions import NotFoundError

from tests.harness.ca import CertificateAuthority
from tests.harness.child_process import Child, until

VARIABLE = "STEERSMAN_OPERATORS"
WAIT = 60.0

Document = dict[str, Any]


def directory() -> Path:
    """Where programs and sources are."""
    return Path(os.environ.get(VARIABLE, "/nonexistent"))


def needs(*paths: str) -> pytest.MarkDecorator:
    """Skips a test unless these are there, below the directory."""
    missing = [path for path in paths if not (directory() / path).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)}: set {VARIABLE}")


def documents(*paths: Path) -> list[Document]:
    """All documents of some files of YAML."""
    return [each for path in paths for each in yaml.safe_load_all(path.read_text()) if each]


def free_port() -> int:
    """A port of loopback that is free now, for a program which cannot choose one itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


class Plane:
    """``steersman up`` as a process, and the programs that work on it."""

    def __init__(self, where: Path, up: Child, kubeconfig: Path) -> None:
        self.where, self.up, self.kubeconfig = where, up, kubeconfig
        self.programs: list[Child] = []
        self._admin = admin = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
        cache = str(where / "discovery.json")
        self._client: Any = dynamic.DynamicClient(admin, cache_file=cache)  # type: ignore[no-untyped-call]

    def start(self, name: str, *flags: str, account: str) -> Child:
        """Runs a program until the end of the test, with the rights of a ServiceAccount (``namespace/name``)."""
        rights = self._kubeconfig(*account.split("/"))
        command = [str(directory() / "bin" / name), *flags, f"--kubeconfig={rights}"]
        # Some heed the flag only, some the variable only.
        program = Child(command, self.where / f"{name}.log", {"KUBECONFIG": str(rights)})
        self.programs.append(program)
        return program

    def _kubeconfig(self, namespace: str, name: str) -> Path:
        request: Any = {"spec": {"expirationSeconds": 3600}}
        core = client.CoreV1Api(self._admin)
        made = core.create_namespaced_service_account_token(name, namespace, request)
        document = yaml.safe_load(self.kubeconfig.read_text())
        document["users"][0]["user"] = {"token": made.status.token}
        path = self.where / f"{namespace}-{name}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def helm(self, *arguments: str, fails: bool = False, program: str = "helm") -> str:
        """Runs Helm with its own files in the test's directory; what it prints."""
        homes = {f"HELM_{each}_HOME": str(self.where / each.lower()) for each in ("CACHE", "CONFIG", "DATA")}
        command = [str(directory() / "bin" / program), *arguments, f"--kubeconfig={self.kubeconfig}"]
        done = subprocess.run(command, env=homes, capture_output=True, text=True, timeout=120, check=False)
        assert bool(done.returncode) is fails, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def kind(self, document: Document) -> Any:
        return self._client.resources.get(api_version=document["apiVersion"], kind=document["kind"])

    def create(self, document: Document, namespace: str = "default", **query: Any) -> Document:
        """Creates an object. Raises `kubernetes.dynamic.exceptions.DynamicApiError`."""
        made: Document = (
            self.kind(document).create(document, namespace=_where(document, namespace), **query).to_dict()
        )
        return made

    def apply(self, *given: Document, namespace: str = "default") -> None:
        """Applies objects on the server, in their order."""
        for document in given:
            self.kind(document).server_side_apply(
                document,
                document["metadata"]["name"],
                namespace=_where(document, namespace),
                field_manager="test",
                force_conflicts=True,
            )
            if document["kind"] == "CustomResourceDefinition":
                self.served(document["metadata"]["name"])

    def served(self, name: str) -> None:
        """Waits until a CustomResourceDefinition is established, and looks at discovery again."""

        def established() -> bool:
            found = self.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, None)
            return has_condition(found, "Established")

        self.until(established, f"{name} is established")
        self._client.resources.invalidate_cache()

    def get(self, version: str, kind: str, name: str, namespace: str | None = "default") -> Document:
        """An object; empty if it is not there."""
        try:
            resource = self._client.resources.get(api_version=version, kind=kind)
            found: Document = resource.get(name=name, namespace=namespace).to_dict()
        except NotFoundError:
            return {}
        return found

    def list(self, version: str, kind: str, namespace: str = "default", **query: str) -> list[Document]:
        resource = self._client.resources.get(api_version=version, kind=kind)
        found: list[Document] = resource.get(namespace=namespace, **query).to_dict()["items"]
        return found

    def patch(self, version: str, kind: str, name: str, change: Document, namespace: str = "default") -> None:
        """Merges a change into an object. Raises `kubernetes.dynamic.exceptions.DynamicApiError`."""
        resource = self._client.resources.get(api_version=version, kind=kind)
        merge = "application/merge-patch+json"
        resource.patch(name=name, namespace=namespace, body=change, content_type=merge)

    def scale(self, version: str, kind: str, name: str, replicas: int) -> None:
        """Sets the number of replicas, as ``kubectl scale`` does it."""
        resource = self._client.resources.get(api_version=version, kind=kind)
        merge, change = "application/merge-patch+json", {"spec": {"replicas": replicas}}
        resource.scale.patch(name=name, namespace="default", body=change, content_type=merge)

    def delete(self, version: str, kind: str, name: str, namespace: str | None = "default") -> None:
        self._client.resources.get(api_version=version, kind=kind).delete(name=name, namespace=namespace)

    def until(self, ready: Callable[[], bool], what: str, program: Child | None = None) -> None:
        """Looks again until it is so. The error has the end of the program's log."""
        until(ready, program or self.up, WAIT, what, step=0.2)

    def listening(self, port: int, program: Child) -> None:
        """Waits until a program listens on a port of loopback."""

        def open_() -> bool:
            with socket.socket() as tried:
                return tried.connect_ex(("127.0.0.1", port)) == 0

        self.until(open_, f"{program.argv[0]} listens on {port}", program)


@contextmanager
def plane(where: Path, *flags: str) -> Iterator[Plane]:
    """A plane with nodes, controllers and a scheduler; it ends with all programs that were started on it."""
    kubeconfig = where / "kubeconfig"
    command = [sys.executable, "-m", "steersman.manager.cli", "up", "--port=0", f"--kubeconfig={kubeconfig}"]
    up = Child([*command, *flags], where / "up.log")
    programs: list[Child] = []
    try:
        until(lambda: "steersman is up" in up.log(), up, WAIT, "steersman is up")
        running = Plane(where, up, kubeconfig)
        programs = running.programs
        yield running
        # An operator may get over an answer of 500; we do not.
        assert not re.search(r"app\.py:\d+\] .* failed", up.log()), up.log()
    finally:
        for program in reversed(programs):
            program.stop(2)
        up.stop()


def serving_files(where: Path, service: str, namespace: str) -> str:
    """Writes ``tls.crt`` and ``tls.key`` for a Service's webhooks; the ``caBundle`` for their configurations."""
    authority = CertificateAuthority("webhooks")
    pair = authority.serving([f"{service}.{namespace}.svc", f"{service}.{namespace}"], ["127.0.0.1"])
    where.mkdir(parents=True, exist_ok=True)
    (where / "tls.crt").write_bytes(pair.cert)
    (where / "tls.key").write_bytes(pair.key)
    return base64.b64encode(authority.pair.cert).decode()


def trusting(document: Document, bundle: str) -> Document:
    """A manifest whose webhooks trust an authority, as cert-manager's injector would leave it."""
    configs = [each["clientConfig"] for each in document.get("webhooks", ())]
    if document["kind"] == "CustomResourceDefinition":
        webhook = document["spec"].get("conversion", {}).get("webhook")
        configs += [webhook["clientConfig"]] if webhook else []
    for each in configs:
        each["caBundle"] = bundle
    return document


def has_condition(document: Document, kind: str) -> bool:
    """Whether a condition of an object is True."""
    found = document.get("status", {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in found)


def _where(document: Document, namespace: str) -> str:
    named: str = document["metadata"].get("namespace") or namespace
    return named
