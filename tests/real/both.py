"""One story told to both managers at once, each on a plane of its own, and what they leave behind.

A story waits by watching, never by the clock, so what a manager does next does not depend on how fast it is;
what is left at the end is brought into a form that can be compared.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from steersman.api.clock import RealClock
from steersman.api.generated import load
from steersman.api.kinds import NAMESPACES, Object
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.explore.normalize import Document, normalise
from steersman.sim.kubelet import Kubelets
from tests.harness.child_process import Child, tail
from tests.harness.envtest import ASSETS, MANAGER, Binary, RealPlane
from tests.harness.follow import beside, gone, until

O = TypeVar("O", bound=Object)
T = TypeVar("T")
Ends: TypeAlias = dict[str, dict[str, Any]]
"""What is left, by manager and part."""

OURS: Binary = "steersman"
REFERENCE: Binary = "kube-controller-manager"
DEFINITIONS: Kind[Any] = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
EVENTS: Kind[Document] = Kind("", "v1", "Event", "events", True, dict)
FLAGS = (
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--kube-api-qps=200",
    "--kube-api-burst=300",
)
SERVING = (
    "--bind-address=127.0.0.1",
    "--permit-port-sharing=true",
    "--authorization-always-allow-paths=/metrics",
)
PATIENCE = 75.0
QUIET = 1.5
WRITES = ("create", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a story is told: one manager, with a plane and a namespace of its own."""

    plane: RealPlane
    api: Api
    binary: Binary
    namespace: str

    async def create(self, kind: Kind[Any], *documents: Document) -> None:
        for document in documents:
            await self.api.create(kind.untyped, self.namespace if kind.namespaced else "", document)

    async def patch(self, kind: Kind[Any], name: str, body: Document, subresource: str = "") -> None:
        namespace = self.namespace if kind.namespaced else ""
        await self.api.patch(kind.untyped, namespace, name, body, subresource=subresource)

    async def establish(self, plural: str) -> None:
        """Define a resource of one's own, from a file beside this one, and wait until it is served."""
        definition = yaml.safe_load(Path(__file__).with_name(f"{plural}.yaml").read_text())
        await self.create(DEFINITIONS, definition)

        def served(found: Any) -> bool:
            told = found.status.conditions or () if found.status is not None else ()
            return any(one.type == "Established" and one.status == "True" for one in told)

        await self.until(DEFINITIONS, definition["metadata"]["name"], served)

    async def until(self, kind: Kind[O], name: str, ready: Callable[[O], bool]) -> O:
        """The object, once it is there and ready."""
        namespace = self.namespace if kind.namespaced else ""
        last: list[object] = []

        def look(obj: O) -> bool:
            last[:] = [getattr(obj, "status", obj)]
            return ready(obj)

        what = f"{kind.name} {name}"
        return await self._patient(what, until(self.api, kind, namespace, name, look), last)

    async def gone(self, kind: Kind[Any], name: str) -> None:
        await self._patient(f"{kind.name} {name} to go", gone(self.api, kind, self.namespace, name))

    async def told(self, reason: str, about: str) -> None:
        """Wait until somebody has told of this reason, about an object of this name."""

        async def heard() -> None:
            version = ""
            while True:
                page = await self.api.list(EVENTS, self.namespace)
                if any(_is_about(event, reason, about) for event in page.items):
                    return
                version = page.resource_version
                async for event in self.api.watch(EVENTS, self.namespace, resource_version=version):
                    if _is_about(event.obj, reason, about):
                        return

        await self._patient(f"the event {reason} about {about}", heard())

    async def _patient(self, what: str, waiting: Awaitable[T], last: Sequence[object] = ()) -> T:
        try:
            async with asyncio.timeout(PATIENCE):
                return await waiting
        except TimeoutError:
            log = tail(self.plane.managers[-1])
            raise AssertionError(f"{self.binary}: waited {PATIENCE:g} s for {what}; {last}\n{log}") from None

    async def quiet(self) -> None:
        """Wait until managers have written nothing for a while: events come after the fact."""
        loop = asyncio.get_running_loop()
        mark, deadline = self.plane.mark(), loop.time() + QUIET
        while loop.time() < deadline:
            await asyncio.sleep(0.1)
            entries, mark = self.plane.audit(mark), self.plane.mark()
            if any(entry.verb in WRITES and _is_a_manager(entry.user) for entry in entries):
                deadline = loop.time() + QUIET


def alike(ends: Ends, part: str | Callable[[dict[str, Any]], Any]) -> None:
    """Require that both managers left the same of a part of the story, and that there is something of it.

    Skips the test where the reference manager was not there to be told.
    """
    if REFERENCE not in ends:
        pytest.skip(f"needs the reference manager: put {REFERENCE} into {ASSETS}")
    ours, reference = (
        ends[one][part] if isinstance(part, str) else part(ends[one]) for one in (OURS, REFERENCE)
    )
    assert reference, "the story must leave something to compare"
    lines = apart(ours, reference)
    assert not lines, "\n".join(lines)


def apart(ours: Any, reference: Any) -> list[str]:
    """What only one of two ends has: a line each, short enough to read."""
    if isinstance(ours, dict) and isinstance(reference, dict):
        return [
            f"{key}: {line}"
            for key in sorted(ours.keys() | reference.keys())
            if ours.get(key) != reference.get(key)
            for line in apart(ours.get(key), reference.get(key))
        ]
    if isinstance(ours, list) and isinstance(reference, list):
        lines = [f"only ours has {one}" for one in ours if one not in reference]
        return lines + [f"only the reference has {one}" for one in reference if one not in ours]
    return [f"{ours!r} here, {reference!r} there"] if ours != reference else []


Story: TypeAlias = Callable[[Stage], Awaitable[dict[str, Any] | None]]
"""What it answers with is compared, too."""
EndsByBinary: TypeAlias = dict[Binary, dict[str, Any]]


def tell(
    story: Story,
    namespace: str,
    *,
    controllers: Sequence[str],
    kinds: Sequence[Kind[Any]],
    flags: Sequence[str] | Callable[[RealPlane], Sequence[str]] = (),
    nodes: Sequence[str] = ("node-1",),
    apiserver: Sequence[str] = (),
    before: Story | None = None,
) -> Ends:
    """Tell both a story; what each has left of these kinds, and of events. ``flags`` of the managers may depend on
    their plane, whose keys they are to use. ``apiserver`` are flags of its own.
    ``before`` is told before there is a manager.

    Where the binary of the reference manager is not there, ours is alone.
    """
    there = os.access(Path(os.environ.get(ASSETS, ""), REFERENCE), os.X_OK)
    binaries = (OURS, REFERENCE) if there else (OURS,)

    def argv(plane: RealPlane) -> tuple[str, ...]:
        more = flags(plane) if callable(flags) else flags
        return f"--controllers={','.join(controllers)}", *FLAGS, *more

    async def all_of_them(planes: Sequence[RealPlane]) -> Ends:
        async with asyncio.TaskGroup() as tasks:
            told = [
                tasks.create_task(_tell(before, story, plane, binary, namespace, argv(plane), kinds, nodes))
                for plane, binary in zip(planes, binaries, strict=True)
            ]
        return {binary: task.result() for binary, task in zip(binaries, told, strict=True)}

    with ExitStack() as stack:
        planes = [stack.enter_context(RealPlane.start(apiserver=apiserver)) for _ in binaries]
        return asyncio.run(all_of_them(planes))


async def _tell(
    before: Story | None,
    story: Story,
    plane: RealPlane,
    binary: Binary,
    namespace: str,
    argv: Sequence[str],
    kinds: Sequence[Kind[Any]],
    nodes: Sequence[str],
) -> dict[str, Any]:
    mark = plane.mark()
    async with plane.connect() as api:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await api.create(NAMESPACES, "", space)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await api.create(Kind("", "v1", "ServiceAccount", "serviceaccounts", True, dict), namespace, account)
        stage = Stage(plane, api, binary, namespace)
        if before is not None:
            await before(stage)
        port = plane.free_port()
        manager = plane.manager(*argv, *SERVING, f"--secure-port={port}", binary=binary)
        kubelets = Kubelets(api, RealClock(), tuple(nodes), register=False)
        async with beside(_watchdog(manager), kubelets.run()):
            said = await story(stage) or {}
            found: dict[str, list[Document]] = {}
            for kind in (*kinds, EVENTS):
                page = await api.list(kind.untyped, namespace if kind.namespaced else "")
                found[kind.plural] = [item for item in page.items if isinstance(item, dict)]
            # Kubelets say what images they pull, which depends on who came first.
            found[EVENTS.plural] = [event for event in found[EVENTS.plural] if not _is_of_a_kubelet(event)]
            counted = await asyncio.to_thread(_counters, port)
        manager.stop()
    refused = [entry for entry in plane.audit(mark) if _is_a_manager(entry.user) and entry.code == 403]
    assert refused == [], "each controller has just its bootstrap rights"
    assert "Traceback" not in manager.log()
    return {**normalise(found), **said, "counters": counted}


def _is_of_a_kubelet(event: Document) -> bool:
    component: str = event.get("source", {}).get("component") or event.get("reportingComponent", "")
    return component == "kubelet"


def _counters(port: int) -> dict[str, float]:
    """What a manager has counted, by name and labels."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context, timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        f"{sample.name} {' '.join(sample.labels[label] for label in sorted(sample.labels))}".rstrip(): sample.value
        for family in families
        if family.type in ("counter", "gauge")
        for sample in family.samples
    }


async def _watchdog(manager: Child) -> None:
    await manager.exited()
    raise AssertionError(f"the manager ended with code {manager.code}:\n{tail(manager)}")


def _is_a_manager(user: str) -> bool:
    return user == MANAGER or user.startswith("system:serviceaccount:kube-system:")


def _is_about(event: Any, reason: str, about: str) -> bool:
    if not isinstance(event, dict):
        return False
    return bool(event.get("reason") == reason and event.get("involvedObject", {}).get("name") == about)
