"""The shell's lists past the cache: one snapshot each, also when the continue token expires half-way."""

from __future__ import annotations

from typing import Any, cast

import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import Expired
from steersman.api.kinds import PODS, Object, ObjectMeta, ReplicaSet
from steersman.api.kinds.services import Service
from steersman.api.scheme import Key
from steersman.client.api import Api, Page, UndecodableObject
from steersman.intent.actions import List, UpdateStatus
from steersman.intent.cloud import CloudCall, DeleteLoadBalancer, EnsureLoadBalancer, GetLoadBalancer
from steersman.intent.undecodable import Undecodable
from steersman.intent.verdict import Rest, Verdict
from steersman.runtime.ledger import Doubt, Ledger
from steersman.runtime.shell import Deposed, Shell
from steersman.runtime.trace import Step
from tests.harness.cloud import Cloud


class ExpiringApi:
    """Serves a list whose second page has expired; listed anew, it holds other objects."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def list(self, kind: object, namespace: str = "", **options: Any) -> Page[Object]:
        self.limits.append(options.get("limit", 0))
        if options.get("continue_"):
            raise Expired("The provided continue parameter is too old")
        if len(self.limits) == 1:
            return Page([Object(ObjectMeta(name="stale", uid="1", resourceVersion="5"))], "7", "token")
        return Page([Object(ObjectMeta(name="fresh", uid="2", resourceVersion="8"))], "9", "")


class RecordingLedger:
    """Records what a doubt was cleared with."""

    def __init__(self, doubt: Doubt) -> None:
        self.doubt = doubt
        self.found: list[str] = []

    def doubts(self, key: Key) -> tuple[Doubt, ...]:
        return (self.doubt,)

    def cleared(self, key: Key, doubt: Doubt, found: Any) -> None:
        self.found = [meta.name for meta in found]


async def test_a_doubt_is_cleared_with_one_snapshot_when_the_list_expires_half_way() -> None:
    api = ExpiringApi()
    ledger = RecordingLedger(Doubt(PODS.as_(Object), "default", labels="app=web"))
    unused: Any = None
    shell = Shell(cast("Api", api), unused, cast("Ledger", ledger), unused, unused)
    await shell.resolve(Key("default", "web"))
    assert ledger.found == ["fresh"]
    assert api.limits == [500, 500, 0]


class UndecodableApi:
    """Lists one pod that cannot be decoded."""

    async def list(self, kind: object, namespace: str = "", **options: Any) -> Page[UndecodableObject]:
        return Page([UndecodableObject(ObjectMeta(name="odd", namespace="ns"), "nonsense")], "7")


async def test_a_listed_object_that_cannot_be_decoded_fails_the_decision_that_looks_inside() -> None:
    unused: Any = None
    shell = Shell(cast("Api", UndecodableApi()), unused, unused, RealClock(), unused)
    names: list[str] = []

    async def decide() -> Verdict:
        (found,) = await List(PODS, "ns")
        names.append(found.metadata.name)
        return Rest(found.spec.nodeName)

    with pytest.raises(Undecodable, match="Pod ns/odd cannot be decoded: nonsense"):
        await shell.drive(Key("ns", "k"), decide(), None)
    assert names == ["odd"], "it is there all the same"


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (GetLoadBalancer("c", Service()), True),
        (EnsureLoadBalancer("c", Service(), ()), False),
        (DeleteLoadBalancer("c", Service()), False),
    ],
)
async def test_a_manager_that_no_longer_leads_changes_nothing_in_the_cloud(
    call: CloudCall[Any], sent: bool
) -> None:
    cloud = Cloud()
    unused: Any = None
    shell = Shell(unused, unused, unused, RealClock(), unused, fence=lambda: False, cloud=cloud)

    async def decide() -> Verdict:
        await call
        return Rest("done")

    if sent:
        await shell.drive(Key("d", "s"), decide(), [])
    else:
        with pytest.raises(Deposed):
            await shell.drive(Key("d", "s"), decide(), [])
    assert bool(cloud.calls) is sent


async def test_a_status_that_is_so_already_is_neither_sent_nor_a_step_of_the_round() -> None:
    unused: Any = None
    steps: list[Step] = []
    shell = Shell(unused, unused, cast("Ledger", unused), RealClock(), unused)
    owner = ReplicaSet(ObjectMeta(name="web", namespace="default"))

    async def decide() -> Verdict:
        await UpdateStatus(owner, owner.status)
        return Rest("all is so already")

    assert await shell.drive(Key("default", "web"), decide(), steps) == Rest("all is so already")
    assert steps == []
