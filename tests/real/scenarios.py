"""All recorded scenarios: their requests, the answers of a real kube-apiserver, and the differences that are known.

``python -m tests.real.scenarios NAME ...`` records anew what the real server answers; without a name, all of them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.webhook_server import Handler
from tests.real import (
    scenario,
    scenario_aggregation,
    scenario_connect,
    scenario_conversion,
    scenario_devices,
    scenario_lists,
    scenario_nodes,
    scenario_parameters,
    scenario_policies,
    scenario_rules,
    scenario_storage,
    scenario_values,
    scenario_webhooks,
    scenario_writes,
)
from tests.real import scenario_differences as differences
from tests.real import scenario_plain as plain
from tests.real import scenario_play as play
from tests.real.scenario_differences import Difference
from tests.real.scenario_plain import Answer

SPARED = "COMPACT"
"""The method of a request that has no answer: it makes the server forget."""


@dataclass(frozen=True)
class Scenario:
    """Requests that are sent in this order, and the file of what a real server answered."""

    file: str
    chapters: Mapping[str, Sequence[Any]]
    differences: tuple[Difference, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=lambda: scenario_webhooks.HANDLERS)
    """Those of the webhook server."""

    @property
    def path(self) -> Path:
        return Path(__file__).with_name(self.file)

    @property
    def titles(self) -> list[str]:
        """The names of the requests that have an answer."""
        return [
            f"{chapter}: {ask.title}"
            for chapter, asks in self.chapters.items()
            for ask in asks
            if ask.method != SPARED
        ]

    def recorded(self) -> dict[str, Answer]:
        return plain.recorded(self.path)

    async def play_real(self) -> dict[str, Answer]:
        async with play.real() as target:
            return await play.play(target, self.chapters, self.handlers)

    async def play_embedded(self) -> dict[str, Answer]:
        async with play.embedded() as target:
            return await play.play(target, self.chapters, self.handlers)

    def check(self, ours: Mapping[str, Answer], theirs: Mapping[str, Answer]) -> None:
        """Fails where answers differ and no difference is listed, or where one is listed and nothing differs."""
        found = plain.compared(ours, theirs)
        assert "\n".join(differences.unlisted(found, self.differences)) == ""
        assert list(differences.obsolete(found, self.differences)) == []


SCENARIOS: Mapping[str, Scenario] = {
    "verbs": Scenario("scenario.txt", scenario.CHAPTERS, differences.DIFFERENCES),
    "cel": Scenario("scenario_cel.txt", {**scenario_rules.CHAPTERS, **scenario_policies.CHAPTERS}),
    "servers": Scenario(
        "scenario_servers.txt",
        {
            **scenario_conversion.CHAPTERS,
            **scenario_aggregation.CHAPTERS,
            **scenario_nodes.CHAPTERS,
            **scenario_lists.CHAPTERS,
        },
        differences.SERVERS,
    ),
    "connect": Scenario(
        "scenario_connect.txt", scenario_connect.CHAPTERS, handlers=scenario_connect.HANDLERS
    ),
    "writes": Scenario("scenario_writes.txt", scenario_writes.CHAPTERS),
    "values": Scenario("scenario_values.txt", scenario_values.CHAPTERS),
    "parameters": Scenario("scenario_parameters.txt", scenario_parameters.CHAPTERS),
    "devices": Scenario(
        "scenario_devices.txt",
        {**scenario_storage.CHAPTERS, **scenario_devices.CHAPTERS},
        differences.TABLES,
    ),
}


if __name__ == "__main__":
    for name in sys.argv[1:] or SCENARIOS:
        each = SCENARIOS[name]
        each.path.write_text(plain.write(asyncio.run(each.play_real())))
