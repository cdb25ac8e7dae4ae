"""A cluster of rows for the attach/detach controller: caches that answer its actions, and a scripted CSI driver.

An object that is put runs the rounds that its change leads to. The driver and the kubelets do only what a test says.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.api.kinds import PODS, Object, ObjectMeta, Pod
from steersman.api.kinds.nodes import NODES, AttachedVolume, Node
from steersman.api.kinds.storage import (
    VOLUMEATTACHMENTS,
    CSIDriver,
    CSIDriverSpec,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    VolumeError,
)
from steersman.api.scheme import Key, kind_of
from steersman.controllers.attachdetach import controller
from steersman.controllers.attachdetach.memory import Memory
from steersman.controllers.attachdetach.world import MANAGED
from steersman.controllers.shared.volumes import attachment_name, volume_named
from steersman.intent.actions import Action, Address, Create, Delete, Emit, List, Patch, Read
from steersman.intent.controller import Change, memory_of
from steersman.intent.metrics import Measure, Metric
from steersman.intent.settings import Settings
from steersman.intent.verdict import Verdict, Wake
from steersman.runtime.action_table import interpretation_of
from steersman.testing.decision_driver import USUAL, StaticCaches, WillingServer, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DRIVER = "csi.example.com"
VOLUME = "kubernetes.io/csi/csi.example.com^vol-pv"
FINALIZER = "external-attacher/csi-example-com"
RWO, RWX, ROX, RWOP = "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"

Document = dict[str, Any]


def node(
    name: str = "n1",
    *,
    ready: bool = True,
    managed: bool = True,
    attached: tuple[str, ...] = (),
    in_use: tuple[str, ...] = (),
    taints: tuple[str, ...] = (),
) -> Node:
    document = {
        "metadata": {"name": name, "uid": name, "annotations": {MANAGED: "true"} if managed else {}},
        "spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
            "volumesAttached": [{"name": each, "devicePath": ""} for each in attached],
            "volumesInUse": in_use,
        },
    }
    return msgspec.convert(document, Node)


def volume(name: str = "pv", modes: tuple[str, ...] = (RWO,), **spec: Any) -> PersistentVolume:
    """A PersistentVolume, bound to the claim of its name."""
    source = spec or {"csi": {"driver": DRIVER, "volumeHandle": f"vol-{name}"}}
    document = {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "accessModes": modes,
            "claimRef": {"namespace": "ns", "name": f"claim-{name}", "uid": f"uid-claim-{name}"},
            **source,
        },
    }
    return msgspec.convert(document, PersistentVolume)


def claim(pv: str = "pv", phase: str = "Bound", **metadata: Any) -> PersistentVolumeClaim:
    """The claim of a PersistentVolume."""
    name = f"claim-{pv}"
    document = {
        "metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", **metadata},
        "spec": {"volumeName": pv},
        "status": {"phase": phase},
    }
    return msgspec.convert(document, PersistentVolumeClaim)


def pod(name: str = "p1", on: str = "n1", pv: str = "pv", *, phase: str = "Running", **more: Any) -> Pod:
    """A pod that uses the claim of a PersistentVolume."""
    volumes = more.pop("volumes", [{"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{pv}"}}])
    document = {
        "metadata": {"namespace": more.pop("namespace", "ns"), "name": name, "uid": f"uid-{name}", **more},
        "spec": {"nodeName": on, "volumes": volumes},
        "status": {"phase": phase},
    }
    return msgspec.convert(document, Pod)


def driver(attach_required: bool | None) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(attachRequired=attach_required))


class Rounds:
    """Caches that are the server, too, and the rounds that the controller runs on them."""

    def __init__(self, *objects: Any, **flags: Any) -> None:
        configured = controller.configured(Settings(flags))
        assert configured is not None
        self.controller = configured
        self.caches = StaticCaches(configured)
        self.actions: list[Action[Any]] = []
        self.refusals: dict[type[Action[Any]], ApiError] = {}
        """Errors by the type of the action that is refused."""
        self.before: Callable[[Action[Any]], None] = lambda action: None
        """What happens before an action is answered."""
        self.unseen_pods: list[Pod] = []
        """Pods that the server has, and the cache does not show yet."""
        self.unseen_attachment: VolumeAttachment | None = None
        """A VolumeAttachment that the server has, and the cache does not show yet."""
        self.verdicts: dict[Key, Verdict] = {}
        self._due: dict[Key, float] = {}
        self._queue: dict[Key, None] = {}
        self._revision = 0
        self._running = False
        self._willing = WillingServer()
        self.put(*objects)

    # -- the server

    def put(self, *objects: Any) -> None:
        """Add or replace objects, and run the rounds that follow."""
        for obj in objects:
            self._revision += 1
            stored = replace(obj, metadata=replace(obj.metadata, resourceVersion=str(self._revision)))
            old = self.caches[kind_of(obj)].get(obj.key)
            self.caches.put(stored)
            self._changed(Change(old, stored))
        self._run()

    def remove(self, *objects: Any) -> None:
        for obj in objects:
            self.caches.remove(obj)
            self._changed(Change(obj, None))
        self._run()

    def restart(self) -> None:
        """Another process takes over: all objects arrive anew, and nothing is remembered."""
        objects = [obj for watch in self.controller.watches for obj in self.caches[watch.kind].list()]
        self.caches = StaticCaches(self.controller, *objects)
        self._due.clear()
        for obj in objects:
            self._changed(Change(None, obj))
        self._run()

    def advance(self, seconds: float) -> None:
        """Let time pass, and run the rounds that are due."""
        until = self.caches.elapsed + seconds
        while self._due and min(self._due.values()) <= until:
            key = min(self._due, key=lambda each: self._due[each])
            self.caches.elapsed = max(self.caches.elapsed, self._due.pop(key))
            self._queue[key] = None
            self._run()
        self.caches.elapsed = until

    def _changed(self, change: Change[Any]) -> None:
        for watch in self.controller.watches:
            if watch.kind.resource == kind_of(change.obj).resource:
                self._queue.update(dict.fromkeys(watch.to(self.caches, change)))

    def _run(self) -> None:
        if self._running:
            return
        self._running = True
        try:
            while self._queue:
                key = next(iter(self._queue))
                del self._queue[key]
                self._due.pop(key, None)
                self._round(key)
        finally:
            self._running = False

    def _round(self, key: Key) -> None:
        seen = self.controller.see(self.caches, key)
        if seen is None:
            return
        now = NOW + timedelta(seconds=self.caches.elapsed)
        try:
            _, verdict = walk(self.controller.decide(seen, now), self._answer, recorded=self.actions)
        except ApiError:
            self._due[key] = self.caches.elapsed + 1.0
            return
        self.verdicts[key] = verdict
        if isinstance(verdict, Wake):
            self._due[key] = self.caches.elapsed + verdict.after.total_seconds()

    def _answer(self, action: Action[Any]) -> Any:
        self.before(action)
        if type(action) in self.refusals:
            return self.refusals[type(action)]
        match action:
            case Create():
                return self._create(action)
            case Delete():
                return self._delete(action)
            case Patch():
                found = self.caches[NODES].get(action.target.key)
                if found is None:
                    return NotFound("gone")
                assert not isinstance(action.body, list)
                if action.body["metadata"]["resourceVersion"] != found.metadata.resourceVersion:
                    return Conflict("changed")
                self.put(interpretation_of(action).simulate(self._willing, action))
                return self.node(found.metadata.name)
            case List():
                node = action.field_selector.removeprefix("spec.nodeName=")
                pods = (*self.caches[PODS].list(), *self.unseen_pods)
                return [each for each in pods if each.spec.nodeName == node]
            case Read():
                if isinstance(action.target, Address) and action.target.kind is VOLUMEATTACHMENTS:
                    cached = self.caches[VOLUMEATTACHMENTS].get(action.target.key)
                    return cached or self.unseen_attachment or NotFound("gone")
                return self.caches[NODES].get(action.target.key) or NotFound("gone")
        return USUAL

    def _create(self, action: Create[Any]) -> Any:
        made = msgspec.convert(action.body, VolumeAttachment)
        if self.caches[VOLUMEATTACHMENTS].get(made.key) is not None:
            return AlreadyExists("exists")
        uid = f"uid-{self._revision}"
        self.put(replace(made, metadata=replace(made.metadata, uid=uid, finalizers=(FINALIZER,))))
        return self.caches[VOLUMEATTACHMENTS].get(made.key)

    def _delete(self, action: Delete) -> Any:
        found = self.caches[VOLUMEATTACHMENTS].get(action.target.key)
        if found is None:
            return NotFound("gone")
        self.put(replace(found, metadata=replace(found.metadata, deletionTimestamp=NOW)))
        return None

    # -- the driver and the kubelets

    def attachment(self, on: str = "n1", name: str = VOLUME) -> VolumeAttachment | None:
        known = volume_named(name)
        assert known is not None
        return self.caches[VOLUMEATTACHMENTS].get(Key("", attachment_name(known, on)))

    def answer(self, on: str = "n1", name: str = VOLUME, *, error: str = "") -> None:
        """The driver attaches a volume, or fails to."""
        found = self.attachment(on, name)
        assert found is not None
        failure = VolumeError(message=error) if error else None
        status = replace(found.status, attached=not error, attachError=failure)
        self.put(replace(found, status=status))

    def let_go(self, on: str = "n1", name: str = VOLUME, *, error: str = "") -> None:
        """The driver detaches a volume whose VolumeAttachment is being deleted, or fails to."""
        found = self.attachment(on, name)
        assert found is not None
        assert found.metadata.deletionTimestamp is not None
        if error:
            self.put(replace(found, status=replace(found.status, detachError=VolumeError(message=error))))
        else:
            self.remove(found)

    def mount(self, on: str = "n1", *names: str) -> None:
        """The kubelet reports the volumes that it has mounted: only these."""
        found = self.node(on)
        self.put(replace(found, status=replace(found.status, volumesInUse=names)))

    def node(self, name: str = "n1") -> Node:
        found = self.caches[NODES].get(Key("", name))
        assert found is not None
        return found

    def delete_pod(self, name: str = "p1", namespace: str = "ns") -> None:
        found = self.caches[PODS].get(Key(namespace, name))
        assert found is not None
        self.remove(found)

    # -- what happened

    @property
    def memory(self) -> Memory:
        return memory_of(self.caches, Memory)

    def reported(self, on: str = "n1") -> tuple[str, ...]:
        return tuple(each.name for each in self.node(on).status.volumesAttached)

    @property
    def attached_to(self) -> list[str]:
        """The nodes that have a VolumeAttachment, those being deleted in brackets."""
        return [
            f"({each.spec.nodeName})" if each.metadata.deletionTimestamp else each.spec.nodeName
            for each in self.caches[VOLUMEATTACHMENTS].list()
        ]

    @property
    def events(self) -> list[str]:
        """Events in short: the pod, the reason and the message."""
        return [
            f"{each.about.key.name} {each.reason} {each.message}"
            for each in self.actions
            if isinstance(each, Emit)
        ]

    def writes(self) -> list[str]:
        """The writes in their order, in short."""
        words = {Create: "create attachment", Delete: "delete attachment", Patch: "patch node"}
        return [words[type(each)] for each in self.actions if type(each) in words]

    def measured(self, metric: Metric) -> list[tuple[float, tuple[str, ...]]]:
        return [
            (each.value, each.labels)
            for each in self.actions
            if isinstance(each, Measure) and each.metric == metric
        ]


def attached_volume(name: str = VOLUME) -> AttachedVolume:
    return AttachedVolume(name=name, devicePath="")


def ready_world(*more: Object, modes: tuple[str, ...] = (RWO,), **flags: Any) -> Rounds:
    """Two nodes, a volume with its claim, and a pod on the first node whose volume is attached and mounted."""
    rounds = Rounds(node("n1"), node("n2"), volume(modes=modes), claim(), pod(), *more, **flags)
    rounds.answer()
    rounds.mount("n1", VOLUME)
    rounds.actions.clear()
    return rounds
