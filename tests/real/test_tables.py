"""Tables beside a real API server's: the same columns and the same cells for the same objects."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from steersman.api.generated import Resource, load, resource, resources
from steersman.api.generated.meta_v1 import ListMeta
from steersman.server.discovery.documents import custom_resources
from steersman.server.tables import Printer, custom_printer, generate_table, parse_include_object, printer_for
from tests.harness.child_process import until
from tests.harness.envtest import RealPlane

OBJECTS = Path(__file__).with_name("tables.yaml")
NAMESPACE = "tables"
AS_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


class Client:
    """As little of one as it takes: documents in and out, one connection."""

    def __init__(self, plane: RealPlane) -> None:
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", plane.port, context=plane.tls(), timeout=30
        )

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> Any:
        headers = {"Accept": accept, "Content-Type": "application/json"}
        self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status < 300, f"{method} {path}: {text.decode()}"
        return json.loads(text)

    def status(self, path: str) -> int:
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def close(self) -> None:
        self._connection.close()


def moved(value: Any, now: datetime, request: str) -> Any:
    """A document of ours with its instants and its certificate request filled in."""
    if isinstance(value, dict):
        return {key: moved(item, now, request) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [moved(item, now, request) for item in value]
    if isinstance(value, str) and value.startswith("@"):
        seconds, _, fraction = value[1:].partition(".")
        then = (now - timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{then}.{fraction}Z" if fraction else f"{then}Z"
    return request if value == "%CSR%" else value


def certificate_request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ada")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


CUSTOM = {"Thing": ("things", True), "Area": ("areas", False)}


def home(document: dict[str, Any]) -> str:
    """The path of a document's collection."""
    group, _, version = document["apiVersion"].rpartition("/")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if document["kind"] in CUSTOM:
        plural, namespaced = CUSTOM[document["kind"]]
    else:
        found = resource(group, version, document["kind"])
        plural, namespaced = found.plural, found.namespaced
    return f"{root}/namespaces/{NAMESPACE}/{plural}" if namespaced else f"{root}/{plural}"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A plane of our own, since much of what is written belongs to no namespace, with all objects in it."""
    with RealPlane.start() as plane:
        client = Client(plane)
        client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        documents = moved(yaml.safe_load(OBJECTS.read_text()), datetime.now(UTC), certificate_request())
        for document in documents:
            if document["kind"] in CUSTOM:
                assert plane.apiserver is not None
                path = home(document)
                until(partial(serves, client, path), plane.apiserver, 10, f"{path} is served")
            write(client, document)
        yield client
        client.close()


def undescribed(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**column, "description": ""} for column in table["columnDefinitions"]]


def serves(client: Client, path: str) -> bool:
    return client.status(path) == 200


def write(client: Client, document: dict[str, Any]) -> None:
    path, status, deleted = home(document), document.pop("status", None), document.pop("deleted", False)
    made = client.ask("POST", path, document)
    itself = f"{path}/{made['metadata']['name']}"
    if status:
        client.ask("PUT", f"{itself}/status", {**made, "status": {**made.get("status", {}), **status}})
    if deleted:
        client.ask("DELETE", itself)


def shown(client: Client, path: str, printer: Printer, type_: Any) -> tuple[list[str], list[str]]:
    """The rows a real server shows, and those of ours for the objects it shows, as texts.

    Ages go on while the server works, so ours are made for the whole seconds around.
    """
    before = datetime.now(UTC)
    table = client.ask("GET", f"{path}?includeObject=Object", accept=AS_TABLE)
    after = datetime.now(UTC)
    objects = [msgspec.convert(row["object"], type_) for row in table["rows"] or ()]
    times = [before + timedelta(seconds=step) for step in range(int((after - before).total_seconds()) + 1)]
    ours = [plain(generate_table(printer, objects, time)) for time in (*times, after)]
    theirs, mine = [f"{undescribed(table)}"], [f"{undescribed(ours[0])}"]
    for place, row in enumerate(table["rows"] or ()):
        candidates = [
            f"{table['rows'][place]['cells']} {table['rows'][place].get('conditions')}" for table in ours
        ]
        theirs.append(f"{row['cells']} {row.get('conditions')}")
        mine.append(theirs[-1] if theirs[-1] in candidates else candidates[0])
    return theirs, mine


def plain(table: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(table))


# Of the older autoscalers a real server shows metrics that only their annotations tell.
LISTED = [row for row in resources() if "list" in row.verbs and row.api_version != "autoscaling/v1"]


@pytest.mark.parametrize("row", LISTED, ids=lambda row: f"{row.plural}.{row.group}/{row.version}")
def test_a_built_in_kind_is_shown_as_a_real_server_shows_it(client: Client, row: Resource) -> None:
    kind = load(row.group, row.version, row.kind)
    theirs, ours = shown(client, kind.path(), printer_for(kind.resource), kind.type)
    assert ours == theirs


def test_every_kind_has_a_row_to_compare(client: Client) -> None:
    bare = [
        row.plural
        for row in LISTED
        if not client.ask("GET", load(row.group, row.version, row.kind).path())["items"]
    ]
    assert bare == []


@pytest.mark.parametrize(
    "path", ["/apis/example.com/v1/namespaces/tables/things", "/apis/example.com/v1beta1/things"]
)
def test_custom_resources_are_shown_as_a_real_server_shows_them(client: Client, path: str) -> None:
    crd = client.ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com")
    definition = msgspec.convert(crd, load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").type)
    served = {each.version: each for each in custom_resources(definition)}
    printer = custom_printer(served[path.split("/")[3]].columns)
    theirs, ours = shown(client, path, printer, dict)
    assert len(theirs) == 5
    assert ours == theirs


@pytest.mark.parametrize("include", ["", "None", "Metadata", "Object"])
@pytest.mark.parametrize("name", ["", "/running"])
def test_a_row_carries_as_much_of_its_object_as_asked_for(client: Client, include: str, name: str) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods{name}"
    kind = load("", "v1", "Pod")
    listed = client.ask("GET", path)
    items = listed.get("items", [listed])
    pods = [msgspec.convert(item, kind.type) for item in items]
    version = listed["metadata"]["resourceVersion"]
    # Others write meanwhile, and a list is as new as the last write of anything.
    same = "" if name else f"&resourceVersion={version}&resourceVersionMatch=Exact"
    theirs = client.ask("GET", f"{path}?includeObject={include}{same}", accept=AS_TABLE)
    ours = plain(
        generate_table(
            printer_for("pods"),
            pods,
            datetime.now(UTC),
            api_version="v1",
            kind="Pod",
            include=parse_include_object(include),
            metadata=ListMeta(resourceVersion=version),
        )
    )
    assert ours.keys() == theirs.keys()
    assert ours["metadata"] == theirs["metadata"]
    assert [row["object"] for row in ours["rows"]] == [row["object"] for row in theirs["rows"]]
