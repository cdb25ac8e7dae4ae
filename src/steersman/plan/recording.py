"""Records what happens in a rehearsal: each write with its actor, each round with its causes, each refusal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from steersman.api.errors import ApiError
from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.api.scheme import Key
from steersman.client.api import EventType
from steersman.runtime.trace import Failure, Round
from steersman.server.storage.watch import Commit
from steersman.testing import Cluster

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class Write(NamedTuple):
    """A write, as the store committed it."""

    at: datetime
    actor: str
    commit: Commit


class Refused(msgspec.Struct, frozen=True):
    """A request of the change itself that the server refused."""

    at: datetime
    action: str
    key: Key | None
    kind: str
    error: ApiError


class NumberedRound(msgspec.Struct, frozen=True):
    """A round and its number in the trace."""

    number: int
    round: Round


class Recording:
    """The writes, rounds and refusals in a cluster from a moment on."""

    def __init__(self, cluster: Cluster) -> None:
        self.begin = cluster.now
        self.writes: list[Write] = []
        self.rounds: list[NumberedRound] = []
        """Rounds that wrote, were refused or failed."""
        self.refused: list[Refused] = []
        self.accepted: list[tuple[str, Key]] = []
        """Actions of the change that the server accepted, with their objects."""
        self.draining: dict[str, datetime] = {}
        """Nodes whose drain has not ended, each with the time of its last eviction, or of its begin."""
        self.kinds: dict[str, str] = {}
        """The custom kinds by resource, also of definitions that are deleted."""
        for definition in cluster.list("CustomResourceDefinition"):
            self._define(definition)
        cluster.follow(self._on_write, self._on_round)

    def restart(self, now: datetime) -> None:
        """Forget everything so far."""
        self.begin = now
        self.writes, self.rounds, self.refused, self.accepted = [], [], [], []
        self.draining.clear()

    def _on_write(self, at: datetime, actor: str, commit: Commit) -> None:
        self.writes.append(Write(at, actor, commit))
        if commit.resource == DEFINITIONS:
            self._define(commit.obj)

    def _define(self, definition: CustomResourceDefinition) -> None:
        spec = definition.spec
        self.kinds[f"{spec.names.plural}.{spec.group}"] = spec.names.kind

    def _on_round(self, number: int, round_: Round) -> None:
        if isinstance(round_.ending, Failure) or any(step.writes or step.outcome for step in round_.steps):
            self.rounds.append(NumberedRound(number, round_))

    def writers(self) -> Writers:
        """An index of the rounds by their writes."""
        return Writers(self.rounds)


class Writers:
    """Finds the round that made a write."""

    def __init__(self, rounds: list[NumberedRound]) -> None:
        self._by_version: dict[tuple[str, Key, str], NumberedRound] = {}
        self._deletes: dict[tuple[str, Key], list[NumberedRound]] = {}
        for each in rounds:
            for write in each.round.writes:
                resource = write.kind.resource
                if write.verb in ("delete", "deletecollection") or not write.resource_version:
                    self._deletes.setdefault((resource, write.key), []).append(each)
                else:
                    self._by_version[resource, write.key, write.resource_version] = each

    def of(self, write: Write) -> NumberedRound | None:
        """The round that made a write; None where no controller did, or the round had too many writes to name."""
        commit = write.commit
        meta = commit.obj.metadata
        resource, key = commit.resource, Key(meta.namespace, meta.name)
        found = self._by_version.get((resource, key, str(commit.revision)))
        if found is not None:
            return found
        earlier = [each for each in self._deletes.get((resource, key), ()) if each.round.started <= write.at]
        is_delete = commit.event.type is EventType.DELETED or meta.deletionTimestamp is not None
        return earlier[-1] if earlier and is_delete else None


def failures(rounds: list[NumberedRound]) -> Iterator[tuple[NumberedRound, str, str]]:
    """The refused steps of rounds: the round, the action, and the error in words."""
    for each in rounds:
        for step in each.round.steps:
            if step.outcome:
                yield each, step.action, step.outcome
