"""Rounds of claims and volumes, row by row: the outcomes are upstream's (`rows.txt`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.kinds import (
    EMPTY,
    LabelSelector,
    Object,
    ObjectMeta,
    ObjectReference,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
)
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeResourceRequirements,
)
from steersman.api.kinds.volume_sources import (
    CSIPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
)
from steersman.api.scheme import Key, kind_of
from steersman.controllers.persistentvolume import controller, decide, observe
from steersman.controllers.persistentvolume.memory import Memory
from steersman.controllers.persistentvolume.seen import Config
from steersman.intent.actions import (
    Action,
    Address,
    Create,
    Delete,
    DirectoryError,
    Emit,
    List,
    Read,
    Update,
    UpdateStatus,
)
from steersman.intent.controller import Change
from steersman.intent.verdict import InvalidSpec
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODES = ("ReadWriteOnce", "ReadOnlyMany")
LABELS = {"foo": "true", "bar": "false"}
ANNOTATIONS = {
    "by-controller": "pv.kubernetes.io/bound-by-controller",
    "completed": "pv.kubernetes.io/bind-completed",
    "provisioned-by": "pv.kubernetes.io/provisioned-by",
    "migrated-to": "pv.kubernetes.io/migrated-to",
    "node": "volume.kubernetes.io/selected-node",
    "provisioner": "volume.kubernetes.io/storage-provisioner",
    "beta-provisioner": "volume.beta.kubernetes.io/storage-provisioner",
    "beta-class": "volume.beta.kubernetes.io/storage-class",
}
HOST_PATH = "kubernetes.io/host-path"
PROVISIONERS = {
    "external": "vendor.com/my-volume",
    "external-wait": "vendor.com/my-volume-wait",
    "unknown-internal": "kubernetes.io/unknown",
    "unknown-nfs": "kubernetes.io/nfs",
    "csi": "mydriver.csi.k8s.io",
    "migrated": "kubernetes.io/gce-pd",
}
DELAYED = ("wait", "copper", "external-wait")

State = dict[tuple[str, Key], Object]


# -- reading rows -----------------------------------------------------------------------------


class Row(msgspec.Struct, frozen=True):
    """A round: what is there before it, and what must be there after it."""

    id: str
    classes: tuple[str, ...]
    round: str
    before: tuple[Object, ...]
    after: tuple[Object, ...]
    live: tuple[Object, ...]
    """Objects that only the server has."""
    stale: tuple[Object, ...]
    """Objects that only the cache has."""
    recyclers: Mapping[str, str]
    events: tuple[str, ...]
    failing: str

    @property
    def key(self) -> Key:
        wanted: type[Object] = PersistentVolumeClaim if self.round == "claim" else PersistentVolume
        everything = (*self.before, *self.live)
        return next(obj.key for obj in everything if isinstance(obj, wanted))


def tokens_of(words: list[str]) -> dict[str, str]:
    return {word.partition(":")[0]: word.partition(":")[2] for word in words}


def volume(words: list[str], message: str) -> PersistentVolume:
    name, size, phase, policy, *rest = words
    tokens = tokens_of(rest)
    claim, _, uid = tokens.get("claim", "").partition("/")
    ref = ObjectReference(kind="PersistentVolumeClaim", namespace="default", name=claim, uid=uid)
    csi, path = tokens.get("csi"), tokens.get("path")
    plain = csi is None and path is None
    return PersistentVolume(
        metadata=meta(name, "", f"uid-{name}", rest, tokens),
        spec=PersistentVolumeSpec(
            accessModes=MODES,
            capacity={"storage": size},
            claimRef=ref if claim else None,
            persistentVolumeReclaimPolicy=policy,
            storageClassName=tokens.get("class", ""),
            volumeMode=tokens.get("mode"),
            volumeAttributesClassName=tokens.get("vac"),
            gcePersistentDisk=GCEPersistentDiskVolumeSource() if plain else None,
            csi=CSIPersistentVolumeSource(driver=csi) if csi is not None else None,
            hostPath=HostPathVolumeSource(path=path) if path is not None else None,
        ),
        status=PersistentVolumeStatus(phase="" if phase == "-" else phase, message=message),
    )


def claim(words: list[str]) -> PersistentVolumeClaim:
    name, uid, size, phase, *rest = words
    tokens = tokens_of(rest)
    modes = tuple(tokens["modes"].split(",")) if "modes" in tokens else MODES
    bound = phase == "Bound"
    return PersistentVolumeClaim(
        metadata=meta(name, "default", uid, rest, tokens),
        spec=PersistentVolumeClaimSpec(
            accessModes=modes,
            resources=VolumeResourceRequirements(requests={"storage": size}),
            storageClassName=tokens.get("class"),
            volumeName=tokens.get("volume", ""),
            volumeMode=tokens.get("mode"),
            volumeAttributesClassName=tokens.get("vac"),
            selector=LabelSelector(matchLabels=LABELS) if "selector" in tokens else None,
            dataSource={"name": "test-snap"} if "datasource" in tokens else None,
        ),
        status=PersistentVolumeClaimStatus(
            phase=phase,
            accessModes=modes if bound else (),
            capacity={"storage": tokens.get("capacity", size)} if bound or "capacity" in tokens else EMPTY,
            currentVolumeAttributesClassName=tokens.get("current-vac"),
        ),
    )


def meta(name: str, namespace: str, uid: str, rest: list[str], tokens: dict[str, str]) -> ObjectMeta:
    return ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid,
        resourceVersion="1",
        labels=LABELS if "labels" in tokens else {},
        annotations={
            ANNOTATIONS[word]: value or "yes" for word, value in tokens.items() if word in ANNOTATIONS
        },
        finalizers=tuple(word.removeprefix("finalizer:") for word in rest if word.startswith("finalizer:")),
        deletionTimestamp=NOW if "terminating" in tokens else None,
    )


def pod(words: list[str]) -> Pod:
    name, phase, *rest = words
    uses = tokens_of(rest).get("claim", "")
    volumes = (
        (Volume(name="v", persistentVolumeClaim=PersistentVolumeClaimVolumeSource(claimName=uses)),)
        if uses
        else ()
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", resourceVersion="1"),
        spec=PodSpec(volumes=volumes),
        status=PodStatus(phase=phase),
    )


def storage_class(name: str) -> StorageClass:
    name, _, default = name.partition(":")
    return StorageClass(
        metadata=ObjectMeta(
            name=name, annotations={"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
        ),
        provisioner=PROVISIONERS.get(name, HOST_PATH),
        reclaimPolicy="Delete",
        mountOptions=("foo",) if name == "unsupported-mountoptions" else (),
        volumeBindingMode="WaitForFirstConsumer" if name in DELAYED else "Immediate",
    )


def rows() -> Iterator[Row]:
    classes: tuple[str, ...] = ()
    for block in Path(__file__).with_name("rows.txt").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        for line in block.splitlines():
            if line.startswith("## classes:"):
                classes = tuple(line.partition(":")[2].split())
        if lines:
            yield read_row(lines, classes)


def read_row(lines: list[str], classes: tuple[str, ...]) -> Row:
    round_, id_ = lines[0].split()
    places: dict[str, list[Object]] = {place: [] for place in ("before", "after", "live", "stale")}
    events, failing, recyclers = [], "", {}
    for line in lines[1:]:
        mark, text = line.strip().split(" ", 1)
        if mark == "!":
            events.append(text)
        elif mark == "%":
            failing = text
        else:
            obj = read_object(text)
            words = text.split()
            if "recycler" in words[3:]:
                recyclers[obj.metadata.name.removeprefix("recycler-for-")] = obj.metadata.uid
            if words[-1] in ("live", "stale"):
                places[words[-1]].append(obj)
                if words[-1] == "live":
                    places["after"].append(obj)
            else:
                places["before"] += [obj] if mark in "-=" else []
                places["after"] += [obj] if mark in "+=" else []
    parts = {place: tuple(objects) for place, objects in places.items()}
    return Row(
        id=id_,
        classes=classes,
        round=round_,
        recyclers=recyclers,
        events=tuple(events),
        failing=failing,
        **parts,
    )


def read_object(text: str) -> Object:
    text, _, message = text.partition(" message:")
    kind, *words = text.split()
    match kind:
        case "volume":
            return volume(words, message)
        case "claim":
            return claim(words)
    return pod(words)


# -- running rows -----------------------------------------------------------------------------


def caches_of(*objects: Object) -> StaticCaches:
    """Caches that were filled change by change, so that the memory has seen all of them."""
    caches = StaticCaches(controller, *objects)
    for watch in controller.watches:
        for obj in caches[watch.kind].list():
            list(watch.to(caches, Change(None, obj)))
    return caches


def place_of(obj: Object) -> tuple[str, Key]:
    return kind_of(obj).resource, obj.key


class Server:
    """Answers a decision and keeps what it writes."""

    def __init__(self, row: Row) -> None:
        self.state: State = {place_of(obj): obj for obj in (*row.before, *row.live)}
        self.events: list[str] = []
        self._failing = row.failing.partition(" ")

    def answer(self, action: Action[Any]) -> Any:
        what, _, why = self._failing
        if what == type(action).__name__:
            if not isinstance(action, Read | Create):
                return DirectoryError(why)
            return NotFound(why) if isinstance(action, Read) else AlreadyExists(why)
        match action:
            case Read(target=Address() as at):
                return self.state.get((at.kind.resource, at.key)) or NotFound("not found")
            case Read(target=Object() as target):
                return self.state.get(place_of(target)) or NotFound("not found")
            case Update(target=target):
                self._write(target, keep="status")
            case UpdateStatus(target=target, status=status):
                self._write(replace(target, status=status), keep="spec")
            case Create(body=body) if isinstance(body, PersistentVolume):
                self.state[place_of(body)] = body
            case Delete(target=target):
                self.state.pop(place_of(target), None)  # type: ignore[arg-type]
            case Emit():
                self.events.append(f"{action.type} {action.reason}: {action.message}")
            case List():
                return []
        return USUAL

    def _write(self, obj: Any, *, keep: str) -> None:
        before = self.state[place_of(obj)]
        self.state[place_of(obj)] = replace(obj, **{keep: getattr(before, keep)})


def comparable(objects: Iterator[Object]) -> list[Any]:
    """Objects without what rows leave out."""

    def plain(obj: Object) -> Any:
        document = msgspec.to_builtins(obj, enc_hook=dict)
        document["metadata"].pop("resourceVersion", None)
        ref = document.get("spec", {}).get("claimRef")
        if ref is not None:
            ref.pop("apiVersion", None)
            ref.pop("resourceVersion", None)
        annotations = document["metadata"].get("annotations", {})
        if "kubernetes.io/createdby" in annotations:
            return sorted({obj.metadata.name, document["spec"]["claimRef"]["uid"], *annotations})
        for name in [*annotations]:
            if annotations[name] == "":
                annotations[name] = "yes"
        return document

    return sorted(map(plain, objects), key=repr)


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row.id)
def test_a_round_does_what_upstreams_does(row: Row) -> None:
    caches = caches_of(
        *row.before,
        *row.stale,
        *(storage_class(name) for name in row.classes),
        Node(metadata=ObjectMeta(name="node1")),
    )
    memory = caches.memory
    assert isinstance(memory, Memory)
    memory.recyclers.update(row.recyclers)
    server = Server(row)
    config = Config(
        provisions_host_paths=row.failing != "disabled", attributes_classes=row.failing != "gate-off"
    )
    seen = observe(caches, row.key, config)
    assert seen is not None
    try:
        walk(decide(seen, NOW), server.answer)
    except (InvalidSpec, ApiError):
        pass
    assert server.events == list(row.events)
    made = [obj for obj in row.after if obj.metadata.name.startswith("pvc-") and obj not in row.live]
    kept = [
        obj for obj in server.state.values() if obj.metadata.name not in {each.metadata.name for each in made}
    ]
    assert comparable(iter(kept)) == comparable(obj for obj in row.after if obj not in made)
    assert {obj.key for obj in made} <= {key for _, key in server.state}


@pytest.mark.parametrize(("phase", "reads"), [("Bound", 1), ("Lost", 0)])
def test_the_server_is_asked_for_the_volume_of_a_claim_until_the_claim_is_lost(
    phase: str, reads: int
) -> None:
    bound = claim(["data", "uid", "1Gi", phase, "volume:gone", "by-controller", "completed"])
    seen = observe(caches_of(bound), bound.key)
    assert seen is not None
    actions, _ = walk(decide(seen, NOW), {Read: NotFound("not found")})
    assert sum(isinstance(action, Read) for action in actions) == reads
