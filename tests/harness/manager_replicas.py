"""Replicas of a manager under one lease, what befalls them, and the proof of who wrote when.

Each replica is a process with a user of its own and its own way to the API server, which can be cut. The proof is
the server's audit log: who wrote the lease, who wrote anything else, and in which order the server received it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from steersman.api.kinds import LEASES, NAMESPACES, SERVICEACCOUNTS
from steersman.api.scheme import Kind
from steersman.client.http import HttpApi
from tests.harness.audit import AuditEntry, parse
from tests.harness.child_process import Child
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow

LEASE = "kube-controller-manager"
DURATION, DEADLINE, RETRY = 15.0, 10.0, 2.0
"""The defaults, which all replicas here have."""
WRITES = ("create", "update", "patch", "delete", "deletecollection")
ASIDE = ("leases", "events")
"""Written by who does not lead, too."""
PACE = 3.0
"""Changes a second that the leader has to react to."""


class Wire:
    """A way to the API server that can be cut: nothing comes through, and nobody is told."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self._writers: list[asyncio.StreamWriter] = []
        self._carriers: list[asyncio.Future[Any]] = []
        self.url = ""

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[Wire]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            self._drop()
            await asyncio.gather(*self._carriers, return_exceptions=True)

    def cut(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        """Connections from before are gone, with all that was under way in them."""
        self._drop()
        self._open.set()

    def _drop(self) -> None:
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += (writer, back)
        self._carriers += map(asyncio.ensure_future, (self._carry(reader, back), self._carry(there, writer)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if self._open.is_set():
                    writer.write(data)
                    await writer.drain()
        writer.close()


class Trail:
    """What is in an audit log from here on. Each line is read once, however often one looks."""

    def __init__(self, plane: RealPlane) -> None:
        self._path = plane.audit_path
        self._at = plane.mark()
        self._writes: list[AuditEntry] = []
        self._looks: list[AuditEntry] = []

    def looks(self, namespace: str) -> list[AuditEntry]:
        """Reads of the lease in a namespace."""
        self._read()
        return [entry for entry in self._looks if entry.namespace == namespace]

    def writes(self) -> list[AuditEntry]:
        """Those that succeeded."""
        self._read()
        return self._writes

    def _read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        for entry in parse(whole.splitlines()):
            if entry.verb in WRITES and entry.code < 300:
                self._writes.append(entry)
            elif (entry.verb, entry.resource) == ("get", "leases"):
                self._looks.append(entry)


@dataclass(frozen=True, slots=True)
class Task:
    """What a group works at: an object whose spec changes all the time, and the controller that follows."""

    controller: str
    kind: Kind[Any]
    spec: dict[str, Any]
    changes: tuple[dict[str, Any], dict[str, Any]]


@dataclass
class Replica:
    user: str
    wire: Wire
    child: Child


@dataclass
class Group:
    """Replicas of one manager, their lease and their task, in a namespace of their own."""

    plane: RealPlane
    api: HttpApi
    name: str
    task: Task
    trail: Trail
    replicas: list[Replica] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def of(
        cls, plane: RealPlane, trail: Trail, name: str, task: Task, size: int
    ) -> AsyncIterator[Group]:
        async with plane.connect() as api, api.with_user_agent("driver", qps=PACE, burst=1) as paced:
            group = cls(plane, api, name, task, trail)
            await api.create(NAMESPACES.untyped, "", {"metadata": {"name": name}})
            # No controller makes it here, and pods need one.
            await api.create(SERVICEACCOUNTS.untyped, name, {"metadata": {"name": "default"}})
            await api.create(task.kind.untyped, name, {"metadata": {"name": "work"}, "spec": task.spec})
            async with group._running(size), beside(group._drive(paced)):
                yield group

    @asynccontextmanager
    async def _running(self, size: int) -> AsyncIterator[None]:
        if not size:
            yield
            return
        async with Wire(self.plane.port).laid() as wire:
            user = f"{self.name}-{size}"
            self.plane.kubeconfig(user, ("system:masters",))
            child = self.plane.manager(
                f"--controllers={self.task.controller}",
                f"--leader-elect-resource-namespace={self.name}",
                f"--master={wire.url}",
                user=user,
            )
            self.replicas.append(Replica(user, wire, child))
            try:
                async with self._running(size - 1):
                    yield
            finally:
                child.thaw()
                child.end()

    async def _drive(self, api: HttpApi) -> None:
        """Change what is wanted, as often as the client's own rate limit lets it."""
        while True:
            for change in self.task.changes:
                await api.patch(self.task.kind.untyped, self.name, "work", {"spec": change})

    # -- what is to be seen -------------------------------------------------------------------

    def entries(self) -> list[AuditEntry]:
        """What was written so far to the lease, and by any replica, in the order it was received."""
        users = {replica.user for replica in self.replicas}
        found = (one for one in self.trail.writes() if one.user in users or self._on_lease(one))
        return sorted(found, key=lambda entry: entry.received)

    def _on_lease(self, entry: AuditEntry) -> bool:
        return (entry.resource, entry.namespace, entry.name or LEASE) == ("leases", self.name, LEASE)

    async def standing(self) -> None:
        """Wait until one leads and all others have seen that."""
        leader = await self.leader()
        waiting = {one.user for one in self.replicas if one is not leader}
        async for _ in follow(self.api, LEASES, self.name):
            waiting -= {entry.user for entry in self.trail.looks(self.name)}
            if not waiting:
                return

    async def leader(self, *, but: Sequence[Replica] = ()) -> Replica:
        """Who leads, and has written since, once that is none of those named."""
        async for _ in follow(self.api, LEASES, self.name):
            entries = self.entries()
            holder = next((one.user for one in reversed(entries) if self._on_lease(one)), "")
            found = next((one for one in self.replicas if one.user == holder), None)
            if found is not None and found not in but and self._wrote(found, entries):
                return found
        raise AssertionError("following has no end")

    def _wrote(self, replica: Replica, entries: list[AuditEntry]) -> bool:
        return any(one.user == replica.user and one.resource not in ASIDE for one in entries)

    async def renewals(self, count: int) -> None:
        """Wait until the lease has been written so often."""
        seen = 0
        async for _ in follow(self.api, LEASES, self.name):
            seen += 1
            if seen > count:
                return

    # -- the proof ----------------------------------------------------------------------------

    def reigns(self) -> list[Reign]:
        """Who held the lease, one after the other, and what the replicas wrote meanwhile."""
        entries = self.entries()
        leases = [entry for entry in entries if self._on_lease(entry) and entry.verb != "delete"]
        reigns = [Reign(user, list(run)) for user, run in groupby(leases, key=lambda entry: entry.user)]
        for entry in entries:
            if entry.resource not in ASIDE:
                begun = [reign for reign in reigns if reign.held[0].received <= entry.received]
                assert begun, f"{entry} was written before anybody held the lease"
                begun[-1].written.append(entry)
        return reigns


@dataclass
class Reign:
    user: str
    held: list[AuditEntry]
    """Writes of the lease."""
    written: list[AuditEntry] = field(default_factory=list)
    """Other writes that the server received before it received the next holder's first write of the lease."""

    @property
    def strangers(self) -> list[AuditEntry]:
        return [entry for entry in self.written if entry.user != self.user]

    def until(self, heir: Reign) -> float:
        """Seconds from the last renewal to the successor's first."""
        return (heir.held[0].received - self.held[-1].received).total_seconds()
