"""What a manager serves beside a real API server: to whom, in which words, and as kube-controller-manager does."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.harness.ca import CertificateAuthority
from tests.harness.child_process import Child, until
from tests.harness.envtest import ASSETS, MANAGER, Binary, RealPlane

REFERENCE: Binary = "kube-controller-manager"
BOTH = ("--authentication-kubeconfig=GOOD", "--authorization-kubeconfig=GOOD")
NEITHER = (
    "--authentication-skip-lookup",
    "--authentication-kubeconfig=BROKEN",
    "--authorization-kubeconfig=BROKEN",
)
FLAGS = {
    "alone": (),
    "both": BOTH,
    "neither": NEITHER,
    "undecided": ("--authentication-kubeconfig=GOOD", "--authorization-kubeconfig=BROKEN"),
    "open": (*NEITHER, "--authorization-always-allow-paths=/healthz,/metrics"),
    "tolerant": ("--authentication-kubeconfig=BROKEN", "--authentication-tolerate-lookup-failure"),
    "modern": (*BOTH, "--feature-gates=CBORServingAndStorage=true"),
}
"""Managers by what they are told of whom to ask."""

JSON = "application/json;v=v1beta1;g=config.k8s.io;as="
ROWS = [
    # how it is set up, path, who asks (see `Clients`), what they accept, status; "=" where the bodies are the same
    ("alone", "/healthz", "anonymous", "", "200 ="),
    ("alone", "/metrics", "anonymous", "", "403 ="),
    ("alone", "/metrics", "monitor", "", "403 ="),
    ("alone", "/healthz", "wrong", "", "200 ="),
    ("both", "/healthz", "anonymous", "", "200 ="),
    ("both", "/healthz", "token", "", "200 ="),
    ("both", "/healthz?verbose", "anonymous", "", "200 ="),
    ("both", "/healthz?verbose&exclude=leaderElection&exclude=x", "anonymous", "", "200 ="),
    ("both", "/healthz?exclude=x", "anonymous", "", "200 ="),
    ("both", "/healthz", "wrong", "", "401 ="),
    ("both", "/healthz/leaderElection", "anonymous", "", "403 ="),
    ("both", "/metrics", "anonymous", "", "403 ="),
    ("both", "/metrics", "token", "", "403 ="),
    ("both", "/metrics", "nobody", "", "403 ="),
    ("both", "/metrics", "wrong", "", "401 ="),
    ("both", "/metrics", "stranger", "", "401 ="),
    ("both", "/healthz", "stranger", "", "401 ="),
    ("both", "/metrics", "monitor", "", "200"),
    ("both", "/metrics", "admin", "", "200"),
    ("both", "/metrics/slis", "anonymous", "", "403 ="),
    ("both", "/metrics/slis", "admin", "", "200"),
    ("both", "/", "anonymous", "", "403 ="),
    ("both", "/", "admin", "", "404 ="),
    ("both", "/livez", "anonymous", "", "404 ="),
    ("both", "/readyz", "anonymous", "", "404 ="),
    ("both", "/no<where>", "anonymous", "", "403 ="),
    ("both", "/nowhere", "admin", "", "404 ="),
    ("both", "/api/v1/pods", "anonymous", "", "403 ="),
    ("both", "/healthz/", "admin", "", "404 ="),
    ("both", "/debug/pprof", "admin", "", "302 ="),
    ("both", "/debug/pprof/", "admin", "", "200"),
    ("both", "/debug/pprof/cmdline", "admin", "", "404 ="),
    ("both", "/configz", "admin", "", "200"),
    ("both", "/flagz", "admin", "", "200"),
    ("both", "/statusz", "admin", "", "200"),
    ("both", "/statusz", "admin", "text/plain", "200"),
    ("both", "/statusz", "admin", "*/*", "200"),
    ("both", "/statusz", "admin", "application/json", "406 ="),
    ("both", "/statusz", "admin", JSON + "Statusz", "200"),
    ("both", "/statusz", "admin", JSON.replace("beta", "alpha") + "Statusz", "200"),
    ("both", "/statusz", "admin", JSON.replace("v1beta1", "foo") + "Statusz,*/*", "200"),
    ("both", "/flagz", "admin", JSON + "Flagz", "200"),
    ("both", "/flagz", "admin", "application/yaml" + JSON.removeprefix("application/json") + "Flagz", "200"),
    ("both", "/flagz", "admin", JSON + "Statusz", "406 ="),
    (
        "modern",
        "/statusz",
        "admin",
        "application/cbor" + JSON.removeprefix("application/json") + "Statusz",
        "200",
    ),
    ("both", "/metrics", "anonymous", "application/xml", "403 ="),
    ("both", "/metrics", "anonymous", "application/yaml", "403 ="),
    ("both", "/statusz", "admin", "application/xml", "406 ="),
    ("both", "/healthz", "wrong", "application/yaml", "401 ="),
    ("both", "/metrics?pretty=1", "anonymous", "", "403 ="),
    ("neither", "/healthz", "token", "", "200 ="),
    ("neither", "/metrics", "anonymous", "", "500 ="),
    ("neither", "/metrics", "monitor", "", "401 ="),
    ("undecided", "/metrics", "token", "", "500 ="),
    ("undecided", "/metrics", "admin", "", "200"),
    ("open", "/metrics", "token", "", "200"),
    ("tolerant", "/metrics", "anonymous", "", "403 ="),
]


@dataclass
class Clients:
    """Who asks: what they send, and the certificate they show."""

    headers: dict[str, str]
    pairs: dict[str, Path]

    def get(self, port: int, path: str, who: str, accept: str = "") -> tuple[int, dict[str, str], bytes]:
        context = ssl._create_unverified_context()
        if who in self.pairs:
            context.load_cert_chain(self.pairs[who])
        headers = {"Accept": accept} if accept else {}
        if who in self.headers:
            headers["Authorization"] = self.headers[who]
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def clients(plane: RealPlane, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    folder = tmp_path_factory.mktemp("clients")
    plane.kubectl("create", "namespace", "serving")
    tokens = {}
    for name in ("monitor", "nobody"):
        plane.kubectl("-n", "serving", "create", "serviceaccount", name)
        tokens[name] = plane.kubectl("-n", "serving", "create", "token", name).strip()
    plane.kubectl(
        *("create", "clusterrolebinding", "serving-monitor"),
        *("--clusterrole=system:monitoring", "--serviceaccount=serving:monitor"),
    )
    headers = {name: f"Bearer {token}" for name, token in tokens.items()}
    pairs = {}
    boss = ("system:masters",)
    for name, pair in (
        ("admin", plane._authority.client("boss", boss)),
        ("stranger", CertificateAuthority("strangers").client("boss", boss)),
    ):
        pairs[name] = folder / f"{name}.pem"
        pairs[name].write_bytes(pair.cert + pair.key)
    return Clients({**headers, "wrong": "Bearer wrong", "token": f"Token {tokens['monitor']}"}, pairs)


class Managers:
    """Managers by how they are set up, each started when it is first asked."""

    def __init__(self, plane: RealPlane, clients: Clients, broken: Path) -> None:
        self._plane = plane
        self._clients = clients
        self._broken = broken
        self.children: list[Child] = []
        self.port = cache(self._start)

    def _start(self, binary: Binary, flags: str) -> int:
        plane = self._plane
        port = plane.free_port()
        words = {"GOOD": str(plane.kubeconfig(MANAGER)), "BROKEN": str(self._broken)}
        argv = [
            flag.replace("GOOD", words["GOOD"]).replace("BROKEN", words["BROKEN"]) for flag in FLAGS[flags]
        ]
        child = plane.manager(
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--permit-port-sharing",
            "--controllers=ttl-after-finished-controller",
            f"--leader-elect-resource-name={binary}-{flags}",
            *argv,
            binary=binary,
            env={"KUBERNETES_SERVICE_HOST": ""},
        )
        self.children.append(child)
        # Who may look the authorities up reads them a moment after it has begun to serve.
        knows = "--authentication-kubeconfig=GOOD" in FLAGS[flags]
        until(lambda: self._leads(port, knows), child, 30, f"{binary} {flags} leads", step=0.05)
        return port

    def _leads(self, port: int, knows: bool) -> bool:
        try:
            status, _, body = self._clients.get(port, "/healthz?verbose", "anonymous")
            known = self._clients.get(port, "/nowhere", "admin")[0] == 404 if knows else True
        except OSError:
            return False
        return status == 200 and b"ttl-after-finished" in body and known


@pytest.fixture(scope="module")
def managers(
    plane: RealPlane, clients: Clients, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Managers]:
    config = json.loads(plane.kubeconfig(MANAGER).read_text())
    config["users"][0]["user"] = {"token": "WRONGTOKEN"}
    broken = tmp_path_factory.mktemp("broken") / "kubeconfig"
    broken.write_text(json.dumps(config))
    made = Managers(plane, clients, broken)
    yield made
    said = ""
    for child in made.children:
        child.stop()
        said += child.log()
    assert "WRONGTOKEN" not in said
    for header in clients.headers.values():
        if len(header) > 100:
            assert header.partition(" ")[2] not in said, "a token was logged"


def there(binary: Binary) -> bool:
    return binary == "steersman" or os.access(Path(os.environ.get(ASSETS, ""), binary), os.X_OK)


@pytest.mark.parametrize(("flags", "path", "who", "accept", "expected"), ROWS)
def test_a_manager_answers_as_kube_controller_manager_does(
    managers: Managers, clients: Clients, flags: str, path: str, who: str, accept: str, expected: str
) -> None:
    code, _, same = expected.partition(" ")
    status, headers, body = clients.get(managers.port("steersman", flags), path, who, accept)
    assert status == int(code), body
    if not there(REFERENCE):
        return
    theirs = clients.get(managers.port(REFERENCE, flags), path, who, accept)
    assert status == theirs[0], theirs[2]
    kept = ("Content-Type", "Cache-Control", "X-Content-Type-Options", "Warning", "Location")
    assert {name: headers.get(name) for name in kept} == {name: theirs[1].get(name) for name in kept}
    if same:
        assert body.decode() == theirs[2].decode()


def test_structured_pages_have_the_fields_upstream_has(managers: Managers, clients: Clients) -> None:
    if not there(REFERENCE):
        pytest.skip(f"needs {REFERENCE}")
    for kind in ("Statusz", "Flagz"):
        ours, theirs = (
            json.loads(
                clients.get(managers.port(binary, "both"), f"/{kind.lower()}", "admin", JSON + kind)[2]
            )
            for binary in ("steersman", REFERENCE)
        )
        assert list(ours) == list(theirs)
        if kind == "Flagz":
            assert list(ours["flags"]) == list(theirs["flags"])
        else:
            assert ours["paths"] == theirs["paths"]


def test_the_text_of_a_status_has_upstreams_lines(managers: Managers, clients: Clients) -> None:
    status = clients.get(managers.port("steersman", "both"), "/statusz", "admin")[2].decode()
    names = [line.partition(":")[0] for line in status.splitlines()[4:]]
    assert names == ["Started", "Up", "Python version", "Binary version", "Emulation version", "Paths"]
