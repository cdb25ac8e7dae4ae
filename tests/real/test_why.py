"""``why`` on a real API server, steered by Go's manager and by ours: the same causes, with the rights to get and list alone.

All situations are set up at once, each in a namespace of its own, and asked about until the answer is the expected one. The nodes
are simulated kubelets; kube-scheduler is the scheduler. Afterwards the audit log shows what was asked for.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import NAMESPACES, SERVICEACCOUNTS
from steersman.client.api import Api
from steersman.explain.asking import Question, ask, parse_subject
from steersman.explain.render import text
from steersman.sim.kubelet import Kubelets, KubeletSettings
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, until
from tests.harness.stuck import KINDS, STUCK, Place, Stuck

T = TypeVar("T")

READER = "reader"
PATIENCE = 150.0
"""Seconds until the answer must be the expected one: a CronJob has its time once a minute."""
PAUSE = 0.5
FLAGS = (
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--kube-api-qps=200",
    "--kube-api-burst=300",
    "--node-startup-grace-period=5s",
    "--horizontal-pod-autoscaler-sync-period=2s",
)
OUTSIDE = [each for each in STUCK if each.outside]


class Stage:
    """The plane, with a loop in a thread of its own, on which kubelets run and situations are set up."""

    def __init__(self, plane: RealPlane) -> None:
        self.plane = plane
        self.mark = plane.mark()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._ended: asyncio.Event | None = None
        self._kubelets = self._start(self._run_kubelets())
        self.answers: dict[str, Future[str]] = {
            each.name: self._start(self._answer(each, f"why-{number}")) for number, each in enumerate(OUTSIDE)
        }

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _run_kubelets(self) -> None:
        self._ended = asyncio.Event()
        async with self.plane.connect() as api:
            settings = KubeletSettings(start_delay=0.05, shutdown=0.05)
            kubelets = Kubelets(api, RealClock(), [f"why-node-{n}" for n in range(3)], settings=settings)
            async with beside(kubelets.run()):
                await self._ended.wait()

    async def _answer(self, stuck: Stuck, namespace: str) -> str:
        """Set a situation up, and ask until the answer is the expected one; the last page is returned otherwise."""
        async with self.plane.connect() as admin, self.plane.connect(READER) as reader:
            await admin.create(NAMESPACES.untyped, "", {"metadata": {"name": namespace}})
            await until(admin, SERVICEACCOUNTS, namespace, "default", lambda found: True)
            place = Place(admin, namespace, f"{namespace}-edge", _waiter(admin, namespace))
            await stuck.stage(place)
            kind, name = parse_subject([stuck.subject.format(ns=namespace, node=place.node)])
            expected = stuck.answer.replace("{ns}", namespace).replace("{node}", place.node)
            deadline = self._loop.time() + PATIENCE
            while True:
                page = first = "not there yet"
                try:
                    told = await ask(reader, Question(kind, name, namespace), datetime.now(UTC))
                    page, first = text(told), told.first
                except NotFound:
                    pass
                if re.fullmatch(expected, first) or self._loop.time() > deadline:
                    return first if re.fullmatch(expected, first) else page
                await asyncio.sleep(PAUSE)

    def close(self) -> None:
        for answer in self.answers.values():
            answer.cancel()
        if self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
            self._kubelets.result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()


def _waiter(api: Api, namespace: str) -> Callable[[str, str, Callable[[dict[str, Any]], bool]], Any]:
    async def wait(kind: str, name: str, ready: Callable[[dict[str, Any]], bool]) -> None:
        found = KINDS[kind]
        async with asyncio.timeout(60):
            while True:
                try:
                    if ready(await api.get(found, namespace if found.namespaced else "", name)):
                        return
                except ApiError:
                    pass
                await asyncio.sleep(PAUSE)

    return wait


MANAGERS = (pytest.param("kube-controller-manager", marks=pytest.mark.reference), "steersman")


@pytest.fixture(scope="module", params=MANAGERS)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with RealPlane.start() as plane:
        plane.kubectl("create", "clusterrole", READER, "--verb=get,list,watch", "--resource=*.*")
        plane.kubectl("create", "clusterrolebinding", READER, f"--clusterrole={READER}", f"--user={READER}")
        plane.manager(*FLAGS, binary=request.param)
        plane.scheduler("--leader-elect=false")
        stage = Stage(plane)
        try:
            yield stage
        finally:
            stage.close()


@pytest.mark.parametrize("stuck", OUTSIDE, ids=lambda each: each.name)
def test_the_first_sentence_names_the_cause_from_outside(stage: Stage, stuck: Stuck) -> None:
    told = stage.answers[stuck.name].result(timeout=PATIENCE + 120)
    pattern = stuck.answer.replace("{ns}", r"[\w-]+").replace("{node}", r"[\w-]+")
    assert re.fullmatch(pattern, told), told


def test_only_get_and_list_were_asked_for(stage: Stage) -> None:
    for answer in stage.answers.values():
        answer.result(timeout=PATIENCE + 120)
    asked = stage.plane.audited(lambda entry: entry.user == READER, since=stage.mark)
    verbs = {entry.verb for entry in asked if entry.user == READER}
    assert verbs == {"get", "list"}
    refused = [entry for entry in asked if entry.user == READER and entry.code == 403]
    assert {entry.uri.partition("?")[0] for entry in refused} <= {"/debug/rounds"}
