"""What pods and nodes use, as metrics-server shows it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from steersman.api.quantity import Quantity
from steersman.server.tables.printer import NAME, Cell, Column, Printer, Printers

_COLUMNS = (
    NAME,
    Column("cpu", format="quantity"),
    Column("memory", format="quantity"),
    Column("Window", format="duration"),
)


def node(found: Mapping[str, Any], now: datetime) -> tuple[Cell, ...]:
    usage = found["usage"]
    return found["metadata"]["name"], usage["cpu"], usage["memory"], found["window"]


def pod(found: Mapping[str, Any], now: datetime) -> tuple[Cell, ...]:
    used = {"cpu": Quantity.parse("0"), "memory": Quantity.parse("0")}
    for container in found["containers"]:
        for name in used:
            used[name] = Quantity.parse(container["usage"][name]) + used[name]
    return found["metadata"]["name"], str(used["cpu"]), str(used["memory"]), found["window"]


PRINTERS: Printers = {
    "nodes.metrics.k8s.io": Printer(_COLUMNS, node),
    "pods.metrics.k8s.io": Printer(_COLUMNS, pod),
}
