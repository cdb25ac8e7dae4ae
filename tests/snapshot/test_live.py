"""Snapshots of clusters: what is read, what is kept of it, and the cluster that comes of it."""

from __future__ import annotations

import base64
import gzip
import json
import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from steersman.api.errors import Expired, Forbidden
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.server.storage.durable.errors import DataDirError, UnusablePath
from steersman.server.storage.durable.snapshot_header import CLUSTER, FORMAT, open_header
from steersman.snapshot.file import FileWriter
from steersman.snapshot.loading import load_file
from steersman.snapshot.model import Header, SnapshotKind
from steersman.snapshot.read_cluster import Progress, read_cluster
from steersman.snapshot.redaction import Redactor
from steersman.testing import Cluster
from tests.harness.custom_resources import DEFINITION, WIDGET

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
"""
DATA = """
apiVersion: v1
kind: Secret
metadata:
  name: password
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data":{"word":"aHVudGVyMg=="}}'
    kapp.k14s.io/original: '{"kind":"Secret","data":{"word":"aHVudGVyMg=="}}'
    example.com/owner: the web team
data: {word: aHVudGVyMg==, empty: ""}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {word: hunter2, mode: "on"}
binaryData: {raw: AAEC}
"""


def save(
    cluster: Cluster, path: Path, *, redact: bool = True, page_size: int = 500, **options: Any
) -> Header:
    return save_api(cluster, cluster.world.api(), path, redact=redact, page_size=page_size, **options)


def save_api(cluster: Cluster, api: Api, path: Path, *, redact: bool = True, **options: Any) -> Header:
    with FileWriter(path) as writer:
        done = cluster.run(
            read_cluster(api, writer, redactor=Redactor(b"key") if redact else None, **options)
        )
        return writer.finish(
            tool="test",
            server=done.server,
            time=cluster.now,
            redacted=redact,
            unread=done.unread,
            omitted=done.omitted,
        )


def contents(path: Path) -> list[dict[str, Any]]:
    body = path.read_bytes().partition(b"\n")[2]
    return [json.loads(line) for line in gzip.decompress(body).splitlines()]


@pytest.fixture
def busy() -> Cluster:
    cluster = Cluster(seed=3)
    cluster.apply(WEB)
    cluster.apply(DATA)
    cluster.apply(DEFINITION)
    cluster.apply(WIDGET)
    cluster.settle()
    return cluster


def test_a_cluster_that_was_saved_and_loaded_has_the_same_objects_and_does_nothing(
    busy: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "one.snapshot"
    header = save(busy, file)
    with Cluster.load(file, seed=9) as loaded:
        loaded.advance(minutes=30)
        for kind in ("Pod", "Deployment", "ReplicaSet", "Node", "Widget", "Service", "Namespace"):
            before = {_name(each): _facts(each) for each in busy.list(kind)}
            after = {_name(each): _facts(each) for each in loaded.list(kind)}
            assert after == before, kind
        assert loaded.now >= busy.now
    assert header.objects == sum(kind.objects for kind in header.kinds) > 100
    assert not header.unread
    busy.close()


def _name(obj: Any) -> tuple[str, str]:
    meta = obj["metadata"] if isinstance(obj, dict) else obj.metadata
    return (meta["namespace"], meta["name"]) if isinstance(obj, dict) else (meta.namespace, meta.name)


def _facts(obj: Any) -> tuple[object, ...]:
    if isinstance(obj, dict):
        meta = obj["metadata"]
        return meta["uid"], meta["resourceVersion"], meta["creationTimestamp"], obj["spec"]
    meta = obj.metadata
    facts = meta.uid, meta.creationTimestamp, meta.ownerReferences, getattr(obj, "spec", None)
    # A node reports its status again and again.
    return (
        facts
        if type(obj).__name__ == "Node"
        else (*facts, meta.resourceVersion, getattr(obj, "status", None))
    )


def test_a_loaded_cluster_goes_on_where_the_other_one_was(busy: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "one.snapshot"
    save(busy, file)
    with Cluster.load(file) as loaded:
        kept = {pod.metadata.uid for pod in loaded.list("Pod")}
        loaded.scale("Deployment", "web", 5)
        loaded.wait_until(lambda: loaded.get("Deployment", "web").status.readyReplicas == 5)
        assert kept < {pod.metadata.uid for pod in loaded.list("Pod")}
        loaded.apply({**WIDGET, "metadata": {"name": "two"}})
        assert len(loaded.list("Widget")) == 2
    busy.close()


def test_the_data_of_secrets_and_configmaps_are_hashes_of_the_same_size(
    busy: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "one.snapshot"
    save(busy, file)
    found = {(each["kind"], each["metadata"]["name"]): each for each in contents(file)}
    secret, settings = found["Secret", "password"], found["ConfigMap", "settings"]
    word = base64.b64decode(secret["data"]["word"])
    assert len(word) == len("hunter2")
    assert word != b"hunter2"
    assert secret["data"]["empty"] == ""
    assert settings["data"]["word"] == word.decode(), "equal values have equal hashes"
    assert len(base64.b64decode(settings["binaryData"]["raw"])) == 3
    assert secret["metadata"]["annotations"] == {"example.com/owner": "the web team"}
    stored = gzip.decompress(file.read_bytes().partition(b"\n")[2])
    assert b"hunter2" not in stored
    assert b"aHVudGVyMg==" not in stored
    assert not any("managedFields" in each["metadata"] for each in found.values())
    save(busy, file, redact=False)
    plain = {(each["kind"], each["metadata"]["name"]): each for each in contents(file)}
    assert plain["ConfigMap", "settings"]["data"]["word"] == "hunter2"
    busy.close()


def test_two_snapshots_have_different_hashes() -> None:
    one, other = Redactor(), Redactor()
    assert one.hashed(b"yes") == one.hashed(b"yes")
    assert len(one.hashed(b"yes")) == 3
    assert one.hashed(b"a longer value") != other.hashed(b"a longer value")


class _Wrapped:
    """An Api with some lists refused, or expired once."""

    def __init__(self, api: Api, refused: str = "", expires: str = "") -> None:
        self._api, self._refused, self._expires = api, refused, expires

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Any:
        if kind.resource == self._refused:
            raise Forbidden("no")
        if kind.resource == self._expires and options.get("continue_"):
            self._expires = ""
            raise Expired("too old")
        return await self._api.list(kind, namespace, **options)


def test_what_may_not_be_listed_is_named(busy: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "one.snapshot"
    header = save_api(busy, _Wrapped(busy.world.api(), refused="secrets"), file)
    assert header.unread == {"secrets": "no right to list them"}
    assert "leases.coordination.k8s.io" in header.omitted
    assert "events" in header.omitted
    assert load_file(file).unread == {"secrets": "no right to list them"}
    busy.close()


def test_a_list_that_expires_half_way_starts_over(busy: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "one.snapshot"
    header = save_api(busy, _Wrapped(busy.world.api(), expires="pods"), file, page_size=2)
    pods = [each for each in contents(file) if each["kind"] == "Pod"]
    assert len({each["metadata"]["uid"] for each in pods}) == len(pods) == 3
    assert next(kind for kind in header.kinds if kind.id == "pods").objects == 3
    busy.close()


def test_kinds_that_this_program_does_not_know_survive(tmp_path: Path) -> None:
    file = tmp_path / "one.snapshot"
    from steersman.snapshot.model import SnapshotKind

    with FileWriter(file) as writer:
        writer.begin(SnapshotKind("future.k8s.io", "v3", "Thing", "things", True))
        writer.add(
            b'{"apiVersion":"future.k8s.io/v3","kind":"Thing","metadata":{"name":"a","namespace":"b"},"x":[1]}'
        )
        writer.end("12")
        writer.begin(SnapshotKind("apps", "v9", "Deployment", "deployments", True))
        writer.add(b'{"apiVersion":"apps/v9","kind":"Deployment","metadata":{"name":"a","namespace":"b"}}')
        writer.end("17")
        writer.finish(
            tool="", server="", time=datetime(2026, 1, 1).astimezone(), redacted=True, unread={}, omitted={}
        )
    loaded = load_file(file)
    assert loaded.store.table("things.future.k8s.io").get("b/a").content["x"] == [1]
    assert list(loaded.unknown) == ["deployments.apps"]
    assert loaded.store.revision == 17
    with Cluster.load(file) as cluster:
        cluster.advance(minutes=1)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:-20], "bytes of data instead of"),
        (lambda raw: raw[:-3] + b"xyz", "its checksum differs"),
        (lambda raw: b"hello\n", "not a steersman snapshot"),
        (lambda raw: b"", "not a steersman snapshot"),
        (lambda raw: b'{"name":"steersman-snapshot","format":1}\n', "steersman snapshot restore"),
        (
            lambda raw: f'{{"name":"{CLUSTER}","format":{FORMAT + 1},"kinds":7}}\n'.encode(),
            "use the newer steersman that made it",
        ),
        (lambda raw: f'{{"name":"{CLUSTER}","format":1,"kinds":7}}\n'.encode(), "the header of the snapshot"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_clear_error(
    damage: Any, message: str, tmp_path: Path, busy: Cluster
) -> None:
    file = tmp_path / "one.snapshot"
    save(busy, file)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DataDirError, match=message) as raised:
        load_file(file)
    assert "\n" not in str(raised.value)
    assert str(file) in str(raised.value)
    with pytest.raises(ValueError, match=message):
        Cluster.load(file)
    busy.close()


def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine\n")
    with pytest.raises(DataDirError, match="not a steersman snapshot"):
        FileWriter(file)
    assert file.read_text() == "mine\n"


def test_the_header_says_what_the_file_holds(busy: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "one.snapshot"
    told: list[Progress] = []
    save(busy, file, progress=told.append)
    header = open_header(file, CLUSTER, Header)
    pods = next(kind for kind in header.kinds if kind.id == "pods")
    assert pods.objects == 3
    assert pods.resourceVersion.isdecimal()
    assert header.time == busy.now
    assert header.tool == "test"
    assert told[-1].done == told[-1].total
    assert told[-1].objects == header.objects
    assert [each.objects for each in told] == sorted(each.objects for each in told)
    assert file.stat().st_mode & 0o077 == 0
    busy.close()


@pytest.mark.parametrize("kept", [60, 3000])
def test_a_snapshot_that_is_cut_off_in_its_header_is_damaged_and_not_foreign(
    tmp_path: Path, kept: int
) -> None:
    file = tmp_path / "cut"
    file.write_bytes((b'{"name":"%s","format":1,"tool":"%s' % (CLUSTER.encode(), b"x" * 5000))[:kept])
    with pytest.raises(DataDirError, match="damaged or cut off"):
        load_file(file)


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file may grow beyond the size: the disk is full, as far as this process can tell."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", range(0, 60_000, 3_001))
def test_a_full_disk_is_one_clear_error_and_leaves_no_file(tmp_path: Path, size: int) -> None:
    draw = random.Random(size)
    file = tmp_path / "one.snapshot"

    def write() -> None:
        with FileWriter(file) as writer:
            for number in range(1_000):
                writer.begin(SnapshotKind("", "v1", f"Kind{number}", f"kinds{number}", namespaced=True))
                for _ in range(draw.randrange(3)):
                    writer.add(draw.randbytes(draw.randrange(4_000)))
                if draw.random() < 0.5:
                    writer.restart()
                writer.end("1")

    with pytest.raises(UnusablePath, match="the snapshot cannot be written"), disk_of(size):
        write()
    assert list(tmp_path.iterdir()) == []


def test_bootstrap_tokens_of_a_loaded_cluster_keep_their_expiration_and_not_their_secret(
    tmp_path: Path,
) -> None:
    file = tmp_path / "one.snapshot"
    token: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "expiration": "2099-01-01T00:00:00Z",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    }
    with Cluster(seed=1) as cluster:
        cluster.apply(token)
        save(cluster, file)
    with Cluster(snapshot=file, controllers=["tokencleaner"]) as loaded:
        loaded.settle()
        secret = loaded.get("Secret", "bootstrap-token-abcdef", "kube-system")
    data = {name: base64.b64decode(value).decode() for name, value in secret.data.items()}
    assert data.pop("token-secret") != token["stringData"].pop("token-secret")
    assert data == token["stringData"]
