"""Results as tables: each manager's medians side by side, and their ratio."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from benchmarks.cache import CacheCost
from benchmarks.measure import Cost

OURS, REFERENCE = "steersman", "kube-controller-manager"
UNTRACED = "steersman, trace off"
"""Ours without a trace. It is compared with, where there is no reference."""

_NO_RATIO = ("other CPU s",)

Row = tuple[str, ...]


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _row(
    title: Sequence[str], values: Mapping[str, float | None], managers: Sequence[str], digits: int
) -> Row:
    ours, reference = values.get(OURS), values.get(REFERENCE if REFERENCE in managers else UNTRACED)
    ratio = ours / reference if ours is not None and reference and title[-1] not in _NO_RATIO else None
    return (*title, *(_cell(values.get(name), digits) for name in managers), _cell(ratio, 2))


def _medians(runs: Mapping[str, list[Cost]], read: Callable[[Cost], float]) -> dict[str, float | None]:
    return {name: median(map(read, costs)) for name, costs in runs.items() if costs}


def converge(results: Mapping[str, list[list[Cost]]]) -> list[Row]:
    """Phase by phase, and their sum."""
    managers = list(results)
    rows: list[Row] = [("phase", "what", *managers, "ratio")]
    phases = [cost.phase for cost in next(iter(results.values()))[0]]
    measures: list[tuple[str, Callable[[Cost], float], int]] = [
        ("seconds", lambda c: c.seconds, 2),
        ("pods/s", lambda c: c.rate, 0),
        ("requests", lambda c: c.total, 0),
        ("refused", lambda c: sum(c.refused.values()), 0),
        ("CPU s", lambda c: c.cpu, 2),
        ("API server CPU s", lambda c: c.apiserver_cpu, 2),
        ("harness CPU s", lambda c: c.harness_cpu, 2),
        ("other CPU s", lambda c: c.other_cpu, 2),
        ("RSS MiB", lambda c: c.rss / 2**20, 0),
        ("peak RSS MiB", lambda c: c.peak_rss / 2**20, 0),
    ]
    for number, phase in enumerate(phases):
        runs = {name: [run[number] for run in rounds] for name, rounds in results.items()}
        for what, read, digits in measures:
            values = _medians(runs, read)
            if any(values.values()) or what == "seconds":
                rows.append(_row((phase, what), values, managers, digits))
    for what, read, digits in measures[:1] + measures[2:8]:
        totals: dict[str, float | None] = {
            name: median(sum(read(cost) for cost in run) for run in rounds)
            for name, rounds in results.items()
        }
        rows.append(_row(("all", what), totals, managers, digits))
    return rows


def requests(results: Mapping[str, list[list[Cost]]]) -> list[Row]:
    """What was asked of the API server, phase by phase."""
    managers = list(results)
    rows: list[Row] = [("phase", "request", *managers, "ratio")]
    for number, cost in enumerate(next(iter(results.values()))[0]):
        runs = {name: [run[number] for run in rounds] for name, rounds in results.items()}
        kinds = sorted({kind for costs in runs.values() for one in costs for kind in one.requests})
        for kind in kinds:
            values = _medians(runs, lambda c, kind=kind: c.requests.get(kind, 0))  # type: ignore[misc]
            rows.append(_row((cost.phase, kind), values, managers, 0))
    return rows


def cache(results: Mapping[str, list[CacheCost]]) -> list[Row]:
    """Memory with empty and with full caches."""
    managers = list(results)
    rows: list[Row] = [("memory", *managers, "ratio")]
    measures: list[tuple[str, Callable[[CacheCost], float | None], int]] = [
        ("RSS MiB, no pods", lambda c: c.empty.rss / 2**20, 1),
        ("RSS MiB, all pods", lambda c: c.full.rss / 2**20, 1),
        ("RSS MiB, all pods updated once", lambda c: c.churned.rss / 2**20, 1),
        ("peak RSS MiB, all pods", lambda c: c.full.peak_rss / 2**20, 1),
        ("peak RSS MiB, all pods updated once", lambda c: c.churned.peak_rss / 2**20, 1),
        ("bytes a pod (RSS)", lambda c: c.per_pod(lambda m: m.rss, c.full), 0),
        ("bytes a pod (RSS, updated once)", lambda c: c.per_pod(lambda m: m.rss, c.churned), 0),
        ("bytes a pod (peak RSS)", lambda c: c.per_pod(lambda m: m.peak_rss, c.full), 0),
        ("bytes a pod (heap alive)", _heap, 0),
        ("seconds until the caches are full", lambda c: c.full.seconds, 2),
        ("CPU s until then", lambda c: c.full.cpu, 2),
        ("CPU s to take each update", lambda c: c.churned.cpu - c.full.cpu, 2),
        ("a pod's JSON, bytes", lambda c: c.pod_bytes, 0),
        ("without managedFields", lambda c: c.pod_bytes_trimmed, 0),
    ]
    for what, read, digits in measures:
        values: dict[str, float | None] = {}
        for name, costs in results.items():
            known = [value for value in map(read, costs) if value is not None]
            values[name] = median(known) if known else None
        rows.append(_row((what,), values, managers, digits))
    return rows


def _heap(cost: CacheCost) -> float | None:
    full, empty = cost.churned.heap, cost.empty.heap
    return None if full is None or empty is None else (full - empty) / cost.churned.pods


def render(rows: Sequence[Row], markdown: bool) -> str:
    """A table: text columns to the left, numbers to the right."""
    texts = next(column for column, title in enumerate(rows[0]) if title in (OURS, REFERENCE))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(row: Row) -> str:
        cells = (
            cell.ljust(width) if column < texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip()

    dashes = [
        "-" * width if column < texts else "-" * (width - 1) + ":" for column, width in enumerate(widths)
    ]
    rule = f"| {' | '.join(dashes)} |" if markdown else "  ".join("-" * width for width in widths)
    return "\n".join([line(rows[0]), rule, *map(line, rows[1:])])
