"""Answers of ``/debug/rounds`` for tests of ``steersman top``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from steersman.manager.top.answer import Answer, read_answer

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def controller(name: str = "deployment-controller", **given: Any) -> dict[str, Any]:
    """A controller's figures; what is not given is nothing."""
    quantiles = {"p50": 0.0, "p99": 0.0, "max": 0.0}
    minute = {
        "perSecond": given.pop("rate", 0.0),
        "took": {**quantiles, "p50": given.pop("p50", 0.0), "p99": given.pop("p99", 0.0)},
        "waited": {**quantiles, "p99": given.pop("wait", 0.0)},
        "writes": given.pop("writes", {}),
        "refused": given.pop("refused", 0),
        "failures": given.pop("failed", 0),
        "retries": given.pop("retries", 0),
        "hottest": [
            {"namespace": namespace, "name": key, "rounds": rounds}
            for namespace, key, rounds in given.pop("hottest", ())
        ],
        "seconds": given.pop("seconds", 60.0),
    }
    queue = {
        "ready": given.pop("ready", 0),
        "waiting": given.pop("waiting", 0),
        "working": given.pop("working", 0),
        "oldestSeconds": given.pop("oldest", 0.0),
        "longestSeconds": 0.0,
    }
    return {"name": name, "kind": "Deployment", "rounds": 0, "queue": queue, "lastMinute": minute, **given}


def round_(number: int, of: str = "deployment-controller", name: str = "web", **given: Any) -> dict[str, Any]:
    """A round of a key in the namespace shop, ``ago`` seconds before noon."""
    return {
        "number": number,
        "controller": of,
        "namespace": "shop",
        "name": name,
        "causes": given.pop("causes", []),
        "waited": 0.001,
        "started": NOON - timedelta(seconds=given.pop("ago", 1.0)),
        "took": 0.002,
        "steps": given.pop("steps", []),
        "ending": given.pop("ending", {"rest": "3 of 3 replicas ready"}),
        **given,
    }


def changed(name: str = "web", kind: str = "Deployment", by: int = 0, version: int = 1) -> dict[str, Any]:
    """A cause: an object has changed, by the write of a round, or by another client."""
    return {
        "type": "event",
        "text": f"{kind} shop/{name} changed",
        "resource": f"{kind.lower()}s.apps",
        "kind": kind,
        "namespace": "shop",
        "name": name,
        "event": "changed",
        "resourceVersion": str(version),
        **({"round": by} if by else {}),
    }


def fight(*actors: str, name: str = "web", turns: int = 6) -> dict[str, Any]:
    """A fight about a Deployment in the namespace shop, in the last half minute."""
    return {
        "resource": "deployments.apps",
        "kind": "Deployment",
        "namespace": "shop",
        "name": name,
        "actors": actors,
        "turns": turns,
        "first": NOON - timedelta(seconds=32),
        "last": NOON - timedelta(seconds=2),
    }


def answer(*controllers: dict[str, Any], **given: Any) -> Answer:
    """An answer at noon."""
    rounds = given.pop("rounds", [])
    last = given.pop("last", max((each["number"] for each in rounds), default=0))
    return read_answer(
        {
            "now": NOON,
            "running": True,
            "last": last,
            "next": last,
            "controllers": controllers,
            "fights": given.pop("fights", []),
            "rounds": rounds,
            **given,
        }
    )
