"""Gateway API's CustomResourceDefinitions, full of CEL, with the examples its own repository calls valid and invalid."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes.dynamic.exceptions import DynamicApiError

from tests.harness.child_process import Child
from tests.harness.envtest import ASSETS, RealPlane
from tests.harness.operators import Document, Plane, directory, documents, needs, plane

WORDS = {
    "gateway/duplicate-listeners.yaml": "Listener name must be unique within the Gateway",
    "gateway/hostname-tcp.yaml": "hostname must not be specified for protocols ['TCP', 'UDP']",
    "gateway/invalid-addresses.yaml": "must validate one and only one schema (oneOf)",
    "gateway/invalid-tls-mode.yaml": "tls mode must be Terminate for protocol HTTPS",
    "gatewayclass/invalid-controller.yaml": "spec.controllerName in body should match",
    "httproute/duplicate-header-match.yaml": 'headers[1]: Duplicate value: {"name":"foo"}',
    "httproute/httproute-portless-service.yaml": "Must have port for Service reference",
    "httproute/invalid-filter-duplicate.yaml": "RequestHeaderModifier filter cannot be repeated",
    "httproute/invalid-filter-empty.yaml": "filter.requestHeaderModifier must be specified for",
    "httproute/invalid-path-specialchars.yaml": "must only contain valid characters (matching",
    "httproute/invalid-request-redirect-with-backendref.yaml": "RequestRedirect filter must not be used together",
    "referencegrant/missing-to.yaml": "spec.to: Required value",
    "tlsroute/no-hostname.yaml": "some validation rules were not checked because the object was invalid",
}
"""What some of the refusals say: of CEL rules, and of schemas beside them."""

# These the examples lean on; the rest is not written, for several examples share a name.
KEPT = {"Namespace", "Service", "Deployment", "ConfigMap"}

Answers = dict[str, str]


def files(*parts: str) -> list[Path]:
    return sorted(directory().joinpath("gateway-api", *parts).rglob("*.yaml"))


def install(on: Plane, channel: str) -> None:
    on.apply(
        *documents(*(path for path in files("config/crd", channel) if path.name != "kustomization.yaml"))
    )


def answers(on: Plane, *parts: str) -> Answers:
    """What the server says to each object of these files; "accepted" if it would take it."""
    root = directory().joinpath("gateway-api", *parts)
    return {
        f"{path.relative_to(root)}{f'#{number}' if number else ''}": _answer(on, document)
        for path in files(*parts)
        for number, document in enumerate(documents(path))
    }


def _answer(on: Plane, document: Document) -> str:
    if namespace := document["metadata"].get("namespace"):
        on.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        if document["kind"] in KEPT:
            on.apply(document)
        else:
            on.create(document, query_params=[("dryRun", "All")])
    except DynamicApiError as error:
        if error.status != 422:
            raise
        message: str = json.loads(error.body or "{}")["message"]
        return message
    return "accepted"


@contextmanager
def real(where: Path) -> Iterator[Plane]:
    """A real kube-apiserver behind the same verbs."""
    waiting = Child(["/bin/sleep", "600"], where / "sleep.log")
    try:
        with RealPlane.start() as started:
            yield Plane(where, waiting, started.admin)
    finally:
        waiting.end()


@needs("gateway-api")
def test_valid_examples_are_accepted_and_invalid_ones_refused_by_their_rules(tmp_path: Path) -> None:
    with plane(tmp_path, "--nodes=0") as running:
        install(running, "standard")
        valid = answers(running, "examples/standard")
        assert len(valid) > 50
        assert set(valid.values()) == {"accepted"}
        refused = answers(running, "hack/invalid-examples/standard")
        assert "accepted" not in refused.values()
        assert {name: words for name, words in WORDS.items() if words not in refused[name]} == {}
        # Its ValidatingAdmissionPolicy keeps experimental definitions from replacing those of the standard channel.
        with pytest.raises(DynamicApiError, match="on top of standard channel CRDs is prohibited by default"):
            install(running, "experimental")


@needs("gateway-api")
@pytest.mark.skipif(not os.environ.get(ASSETS), reason=f"needs a real kube-apiserver: set {ASSETS}")
@pytest.mark.parametrize("channel", ["standard", "experimental"])
def test_each_answer_is_kube_apiservers_word_for_word(tmp_path: Path, channel: str) -> None:
    def told(on: Plane) -> Answers:
        install(on, channel)
        return answers(on, "examples", channel) | answers(on, "hack/invalid-examples", channel)

    for name in ("ours", "real"):
        (tmp_path / name).mkdir()
    with plane(tmp_path / "ours", "--nodes=0") as running:
        ours = told(running)
    with real(tmp_path / "real") as running:
        assert ours == told(running)
