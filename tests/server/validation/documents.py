"""Documents that are sent to a server and its recorded responses, without the fields that always differ.

``answers.json`` holds what a real kube-apiserver 1.36 answers to each row of ``documents.yaml``. To write it
anew, run this file where ``KUBEBUILDER_ASSETS`` names the real server's binaries.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from steersman.api.errors import ApiError, from_status, to_status
from steersman.api.generated import resource
from steersman.api.patch import merge
from tests.harness.envtest import RealPlane

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"

PLUGINS = (
    "DefaultIngressClass,DefaultStorageClass,DefaultTolerationSeconds,PersistentVolumeClaimResize,"
    "PodTopologyLabels,Priority,RuntimeClass,ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition"
)
"""Admission plugins that fill in more than defaults or want more to be there; off where answers are compared."""

Document: TypeAlias = dict[str, Any]


class Row(NamedTuple):
    """A document, how it is sent, and what it shows."""

    says: str
    document: Document
    """What is created, or what is there before an update."""
    change: Document | None = None
    """For an update, what is merged into what is there."""
    told: Document | None = None
    """For an update, what is merged into the status before."""
    first: Document | None = None
    """For an update of a part, what is merged into the part before."""
    deleted: bool = False
    """Whether it is being deleted when it is updated."""
    subresource: str = ""
    unordered: bool = False
    """Whether the real server lists the complaints in no particular order."""
    loose: bool = False
    """Whether a complaint shows a value that is printed in another form here."""
    wet: bool = False
    """Whether it must be sent in earnest, since a rehearsal looks at less."""
    generated: bool = False
    """Whether the name is made by the server."""

    @property
    def kind(self) -> tuple[str, str, str]:
        group, _, version = self.document["apiVersion"].rpartition("/")
        return group, version, self.document["kind"]

    def path(self, name: str = "", subresource: str = "") -> str:
        """Where such documents are on a server."""
        errors = resource(*self.kind)
        root = f"/apis/{errors.group}/{errors.version}" if errors.group else f"/api/{errors.version}"
        if errors.namespaced:
            root += "/namespaces/default"
        return "/".join(part for part in (root, errors.plural, name, subresource) if part)


def rows() -> list[Row]:
    """All rows, each with its document whole."""
    data = yaml.safe_load((HERE / "documents.yaml").read_text())
    errors = []
    for row in data["rows"]:
        flags = {name: row.get(name, False) for name in ("unordered", "loose", "wet", "generated")}
        if "create" in row:
            document = merge.apply(deepcopy(data["bases"][row["create"]]), row.get("with", {}))
            if "long" in row:
                _lengthen(document, row["long"])
            errors.append(Row(row["says"], document, **flags))
        else:
            document = merge.apply(deepcopy(data["bases"][row["update"]]), row.get("from", {}))
            before = (row.get("told"), row.get("first"), row.get("deleted", False))
            rest = (row["with"], *before, row.get("subresource", ""))
            errors.append(Row(row["says"], document, *rest, **flags))
    return errors


def _lengthen(document: Document, path: str) -> None:
    """Put more into a field than any server takes."""
    *parents, last = path.split(".")
    for name in parents:
        document = document.setdefault(name, {})
    document[last] = "a" * (2 << 20)


# -- what is compared -------------------------------------------------------------------------

_SERVERS_OWN = ("creationTimestamp", "managedFields", "resourceVersion", "selfLink", "uid", "generation")
_ALLOCATED = ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy")
_ASKER = ("extra", "groups", "uid", "username")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_GENERATED = re.compile(r"Bad_[bcdfghjklmnpqrstvwxz2456789]{5}")
_VALUE = re.compile(r"(Invalid|Duplicate) value: \{.*\}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def refusal(row: Row, error: ApiError) -> Document:
    """An error as it is compared: what is shown of differences, after the first line, is not."""
    status = to_status(error)
    causes = [
        [cause.get("reason", ""), cause.get("field", ""), _plain(row, cause.get("message", ""))]
        for cause in status.get("details", {}).get("causes", [])
    ]
    message = _plain(row, status["message"])
    if row.unordered:
        causes.sort()
        head, _, listed = message.partition(" is invalid: ")
        message = f"{head} is invalid: {sorted(listed.strip('[]').split(', '))}"
    return {"code": status["code"], "reason": status["reason"], "message": message, "causes": causes}


def _plain(row: Row, text: str) -> str:
    text = _UID.sub("UID", text.partition("\n")[0])
    if row.generated:
        text = _GENERATED.sub("Bad_xxxxx", text)
    return _VALUE.sub(r"\1 value: {}", text) if row.loose else text


def stored(row: Row, document: Mapping[str, Any]) -> Document:
    """An object as it is compared: without what the server says of itself."""
    text = _TIME.sub("TIME", _UID.sub("UID", json.dumps(document)))
    result: Document = json.loads(text)
    for name in _SERVERS_OWN:
        result["metadata"].pop(name, None)
    if row.kind[2] == "CertificateSigningRequest":
        for name in _ASKER:
            result["spec"].pop(name, None)
    if row.kind == ("", "v1", "Service"):
        for name in _ALLOCATED:
            result["spec"].pop(name, None)
        for port in result["spec"].get("ports", ()):
            port.pop("nodePort", None)
    return result


# -- asking a real server ---------------------------------------------------------------------

Send: TypeAlias = Callable[[str, str, Document], Document]
"""Method, path and body to the answer; raises `ApiError`."""


def sender(plane: RealPlane) -> Send:
    """Sends to a real server, over one connection."""
    connection = http.client.HTTPSConnection("127.0.0.1", plane.port, context=plane.tls(), timeout=30)

    def send(method: str, path: str, body: Document) -> Document:
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        document: Document = json.loads(response.read())
        if response.status >= 400:
            raise from_status(document, code=response.status)
        return document

    return send


def answer(row: Row, send: Send) -> Document:
    """What a server answers to a row. It keeps nothing of it."""
    if row.change is None:
        dry = "" if row.wet else "?dryRun=All"
        return _answered(row, lambda: send("POST", f"{row.path()}{dry}", row.document))
    old = send("POST", row.path(), row.document)
    name = old["metadata"]["name"]
    if row.told is not None:
        old = send("PUT", row.path(name, "status"), merge.apply(old, row.told))
    if row.first is not None:
        old = send("PUT", row.path(name, row.subresource), merge.apply(old, row.first))
    if row.deleted:
        old = send("DELETE", row.path(name), {})
    new = merge.apply(old, row.change)
    try:
        return _answered(row, lambda: send("PUT", f"{row.path(name, row.subresource)}?dryRun=All", new))
    finally:
        if row.deleted:
            send("PUT", row.path(name), {**old, "metadata": {**old["metadata"], "finalizers": []}})
        else:
            gone = send(
                "DELETE", row.path(name), {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
            )
            if row.kind[2] == "Namespace":
                send("PUT", row.path(name, "finalize"), {**gone, "spec": {}})


def _answered(row: Row, request: Callable[[], Document]) -> Document:
    try:
        return {"object": stored(row, request())}
    except ApiError as error:
        return {"refusal": refusal(row, error)}


def start() -> RealPlane:
    """A real server that fills in defaults and nothing else."""
    return RealPlane.start(apiserver=(f"--disable-admission-plugins={PLUGINS}",))


def main() -> None:
    """Write down what a real server answers."""
    with start() as plane:
        send = sender(plane)
        errors = {row.says: answer(row, send) for row in rows()}
    lines = [
        f"{json.dumps(says)}: {json.dumps(answer, sort_keys=True, ensure_ascii=False)}"
        for says, answer in sorted(errors.items())
    ]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
