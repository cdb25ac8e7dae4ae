"""The report of a plan as text for people, or as Markdown for a review. Pure functions.

Entries of the same kind, actor and moment are one line. Changes of status are told where they matter: when pods become ready,
and when a workload is done. Texts of others (messages, names, fields) are printed in one line, without control characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from steersman.api.printable import one_line
from steersman.plan.model import ClusterEvent, Entry, NotConverged, Refusal, Report
from steersman.runtime.trace import span

Paint: TypeAlias = Callable[[str, str], str]
BOLD, RED, YELLOW, GREEN, DIM, CYAN = "1", "31", "33", "32", "2", "36"
NAMES_SHOWN = 3
LINES = 80
"""Lines of the timeline that are shown."""
VERBS = {
    "create": ("creates", "+", GREEN),
    "change": ("changes", "~", YELLOW),
    "terminate": ("terminates", "-", RED),
    "delete": ("deletes", "-", RED),
}
QUIET_KINDS = ("EndpointSlice", "Endpoints", "ControllerRevision", "Lease", "IPAddress")
"""Kinds whose writes follow from others and are counted, not told, in text."""


class Line(msgspec.Struct, frozen=True):
    """Entries that are told as one."""

    at: float
    entries: tuple[Entry, ...]

    @property
    def first(self) -> Entry:
        return self.entries[0]


def lines(entries: Iterable[Entry]) -> list[Line]:
    """The entries worth telling, in order, equal ones of a moment together."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for each in entries:
        if not is_told(each):
            continue
        owner = (each.object.kind == "Pod" and each.owner) or str(each.object)
        fields = tuple(text.partition(":")[0] for text in each.fields) if each.verb == "change" else ()
        if each.aspect == "status":
            fields = (milestone(each),)
        elif is_binding(each):
            fields = ("spec.nodeName",)
        key = (int(each.at), each.actor, each.verb, each.object.kind, each.object.namespace, owner, fields)
        groups.setdefault(key, []).append(each)
    return sorted((Line(found[0].at, tuple(found)) for found in groups.values()), key=lambda line: line.at)


def is_told(entry: Entry) -> bool:
    """Whether an entry is worth a line of text."""
    if entry.object.kind in QUIET_KINDS:
        return False
    if entry.verb != "change":
        return True
    if entry.aspect == "spec" or (entry.actor == "you" and entry.aspect == "metadata"):
        return bool(entry.fields)
    return bool(milestone(entry))


def is_binding(entry: Entry) -> bool:
    """Whether the scheduler has given a pod its node."""
    return entry.object.kind == "Pod" and any(text.startswith("spec.nodeName = ") for text in entry.fields)


_TOLD = ("Available is", "Complete is", "Failed is", "ScalingLimited is True")


def milestone(entry: Entry) -> str:
    """The news in a change of status; empty where it is not worth telling."""
    starts = any(text.startswith("status.startTime") for text in entry.fields)
    for text in entry.fields:
        if text.startswith("Ready is") and not starts:
            return text
        if text.startswith(_TOLD) or (
            text.startswith("Progressing is") and "Updated" not in text and "Created" not in text
        ):
            return text
        if text.startswith("PodScheduled is False"):
            return text
    for text in entry.fields:
        if text.startswith("status.phase") and not starts and not text.endswith("Running"):
            return f"is {text.rpartition('> ')[2].rpartition('= ')[2]}"
    return ""


# -- text -------------------------------------------------------------------------------------


def text(report: Report, paint: Paint = lambda words, colour: words) -> str:
    """The report for people."""
    return "\n".join(_text(printable(report), paint))


def printable(report: Report) -> Report:
    """The report with each of its texts in one line: none can forge a line of the page, or write to the terminal."""
    return msgspec.convert(_printable(msgspec.to_builtins(report, builtin_types=(datetime,))), Report)


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {_printable(name): _printable(each) for name, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list | tuple) else value


def _text(report: Report, paint: Paint) -> Iterator[str]:
    yield paint(f"Plan: {'; '.join(_short(report.change, 5))}", BOLD)
    yield f"from {report.time:%Y-%m-%d %H:%M:%S} UTC, {span(report.seconds)} ahead"
    yield ""
    told = lines(report.timeline)
    if told:
        yield paint("What the change causes:", BOLD)
        for line in told[:LINES]:
            yield from _line(line, paint)
        if len(told) > LINES:
            yield f"  … and {len(told) - LINES} more lines; -o json has all"
        quiet = len([each for each in report.timeline if not is_told(each)])
        if quiet:
            yield paint(f"  and {_count(quiet, 'write')} of status and bookkeeping (-o json)", DIM)
    else:
        yield paint(_nothing(report), YELLOW)
    if report.refusals:
        yield ""
        yield paint("Refused:", BOLD)
        for refusal in report.refusals:
            yield from _refusal(refusal, paint)
    for title, found in _unfinished(report):
        yield ""
        yield paint(f"{title}, the deepest cause first:", BOLD)
        for stuck in found:
            yield from _stuck(stuck, paint)
    if report.capacity:
        yield ""
        yield paint("Capacity that is missing:", BOLD)
        for missing in report.capacity:
            wanted = (
                ", ".join(f"{name} {amount}" for name, amount in missing.requests.items()) or "no requests"
            )
            yield f"  {_count(len(missing.pods), 'pod')} ({wanted}): {missing.reason}"
    warnings = [each for each in report.events if each.type == "Warning"]
    if warnings:
        yield ""
        yield paint("Warning events:", BOLD)
        yield from (f"  {_event(each)}" for each in _short_events(warnings))
    yield from _rest(report, paint)


def _unfinished(report: Report) -> Iterator[tuple[str, list[NotConverged]]]:
    """The objects that cannot converge, and those that would go on, each under its title."""
    for title, waits in (("Never converges", False), (f"Not converged within {span(report.seconds)}", True)):
        found = [each for each in report.not_converged if each.waits is waits]
        if found:
            yield title, found


def _nothing(report: Report) -> str:
    """The sentence for a change without an entry that is worth a line."""
    if report.timeline:
        return f"The change causes {_count(len(report.timeline), 'write')} of status and bookkeeping alone (-o json)."
    return "The change causes nothing: no control loop would write."


def _rest(report: Report, paint: Paint) -> Iterator[str]:
    anyway = lines(report.anyway)
    if anyway:
        yield ""
        yield paint("Happens anyway, without the change:", BOLD)
        for line in anyway[:10]:
            yield from _line(line, lambda words, colour: words)
        if len(anyway) > 10:
            yield f"  … and {len(anyway) - 10} more lines; -o json has all"
    if report.not_converged_before:
        yield ""
        yield paint("Not as it should be before the change either:", DIM)
        for stuck in report.not_converged_before[:10]:
            yield paint(f"  {stuck.object}: {stuck.causes[0] if stuck.causes else stuck.summary}", DIM)
    yield ""
    yield paint("Assumed:", DIM)
    yield from (paint(f"  {each}", DIM) for each in report.assumptions)
    yield paint("Not known:", DIM)
    yield from (paint(f"  {each}", DIM) for each in report.unknown)
    yield ""
    yield _verdict(report, paint)


def _verdict(report: Report, paint: Paint) -> str:
    if report.converged:
        last = _last(report)
        return paint(f"Converges within {span(last)}." if last else "Converges at once.", GREEN)
    open_ = sum(each.open for each in report.refusals)
    parts = []
    if open_:
        parts.append(f"{_count(open_, 'request')} refused")
    if report.not_converged:
        parts.append(
            f"{_count(len(report.not_converged), 'object')} not converged after {span(report.seconds)}"
        )
    if report.only_slow:
        return paint(f"Does not converge in time: {parts[0]}; a longer --for shows the rest.", YELLOW)
    return paint(f"Does not converge: {', '.join(parts)}.", RED)


def _last(report: Report) -> float:
    return max((each.at for each in report.timeline), default=0.0)


def _line(line: Line, paint: Paint) -> Iterator[str]:
    first = line.first
    verb, mark, colour = VERBS[first.verb]
    head = f"  {_at(line.at):>12}  {paint(mark, colour)} {first.actor} "
    if first.aspect == "status":
        yield f"{head}sees {_names(line)}: {milestone(first)}"
        return
    if is_binding(first):
        yield f"{head}binds {_names(line)} to {_nodes(line)}"
        return
    if first.actor == "you":
        verb = verb.removesuffix("s")
    yield f"{head}{verb} {_names(line)}{_because(first)}"
    if first.verb == "change":
        fields = dict.fromkeys(
            field for each in line.entries if each.object == first.object for field in each.fields
        )
        yield from (paint(f"{'':>18}{each}", DIM) for each in list(fields)[:6])


def _nodes(line: Line) -> str:
    found = [
        text.removeprefix("spec.nodeName = ")
        for each in line.entries
        for text in each.fields
        if text.startswith("spec.nodeName = ")
    ]
    return ", ".join(_short(list(dict.fromkeys(found)), NAMES_SHOWN))


def _because(entry: Entry) -> str:
    cause = entry.cause
    if cause is None or not cause.text:
        return ""
    return f", because {cause.text}"


def _names(line: Line) -> str:
    first = line.first
    found = list(dict.fromkeys(each.object.name for each in line.entries))
    if len(found) == 1:
        return str(first.object)
    names = ", ".join(_short(found, NAMES_SHOWN))
    owner = f" of {first.owner}" if first.owner else ""
    return f"{len(found)} {_plural(first.object.kind)}{owner} ({names})"


def _refusal(refusal: Refusal, paint: Paint) -> Iterator[str]:
    times = f" ({refusal.count} times)" if refusal.count > 1 else ""
    later = _later(refusal)
    about = f" of {refusal.object}" if refusal.object is not None else ""
    colour = RED if refusal.open else YELLOW
    yield f"  {_at(refusal.at):>12}  {paint(refusal.by, colour)} refuses “{refusal.action}”{about} by {refusal.actor}{times}{later}"
    yield f"{'':>18}{refusal.message}"


def _later(refusal: Refusal) -> str:
    if refusal.resolved:
        return ", accepted later"
    return ", without the change, too" if refusal.anyway else ""


def _stuck(stuck: NotConverged, paint: Paint) -> Iterator[str]:
    yield paint(
        f"  {stuck.object}: {stuck.causes[0] if stuck.causes else stuck.summary}",
        YELLOW if stuck.waits else RED,
    )
    yield from (f"      {each}" for each in stuck.causes[1:3])
    for label, words in (("loop", stuck.controller), ("next", stuck.next), ("to do", stuck.remedy)):
        if words:
            yield f"      {label + ':':<7}{words}"


def _event(event: ClusterEvent) -> str:
    times = f" ({event.count} times)" if event.count > 1 else ""
    return f"{_at(event.at)} {event.object}: {event.reason}: {event.message}{times}"


def _short_events(events: Sequence[ClusterEvent]) -> list[ClusterEvent]:
    seen: dict[tuple[str, str, str], ClusterEvent] = {}
    for each in events:
        seen.setdefault((each.reason, each.object.kind, each.message), each)
    return list(seen.values())[:12]


# -- Markdown ---------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    """The report for a review, such as a comment of CI."""
    return "\n".join(_markdown(printable(report)))


def _markdown(report: Report) -> Iterator[str]:
    slow = f"within {span(report.seconds)}" if report.only_slow else ""
    mark = "✅ converges" if report.converged else f"❌ does not converge {slow}".rstrip()
    yield f"### Plan: {_cell('; '.join(_short(report.change, 5)))}"
    yield ""
    yield f"**{mark}** ({span(report.seconds)} ahead of {report.time:%Y-%m-%d %H:%M:%S} UTC)"
    told = lines(report.timeline)
    if told:
        yield ""
        yield "| after | who | what | why |"
        yield "|---|---|---|---|"
        for line in told[:LINES]:
            yield f"| {span(line.at) if line.at else '0 s'} | {_cell(line.first.actor)} | {_cell(_what(line))} | {_cell(_because(line.first).removeprefix(', because '))} |"
        if len(told) > LINES:
            yield f"| | | … and {len(told) - LINES} more lines | |"
    else:
        yield ""
        yield _nothing(report)
    for title, found in (
        (
            "Refused",
            [
                f"**{each.by}** refuses {each.action}: {each.message}{_later(each)}"
                for each in report.refusals
            ],
        ),
        *(
            (title, [f"**{each.object}**: {'; '.join(each.causes) or each.summary}" for each in stuck])
            for title, stuck in _unfinished(report)
        ),
        (
            "Capacity that is missing",
            [f"{_count(len(each.pods), 'pod')}: {each.reason}" for each in report.capacity],
        ),
        ("Happens anyway", [_what(line) for line in lines(report.anyway)[:10]]),
        ("Assumed", list(report.assumptions)),
        ("Not known", list(report.unknown)),
    ):
        if found:
            yield ""
            yield f"**{title}**"
            yield ""
            yield from (f"- {_cell(each)}" for each in found)


def _what(line: Line) -> str:
    first = line.first
    if first.aspect == "status":
        return f"{_names(line)}: {milestone(first)}"
    if is_binding(first):
        return f"binds {_names(line)} to {_nodes(line)}"
    fields = f": {'; '.join(first.fields[:4])}" if first.verb == "change" and first.fields else ""
    return f"{VERBS[first.verb][0]} {_names(line)}{fields}"


_MARKUP = re.compile(r"[\\|<`]|(?<=\])\(")
"""Characters that end a cell or begin a tag, a code span or the address of a link."""


def _cell(words: str) -> str:
    """Text for a cell or an item of a list: a text of others makes no cell, tag or link of its own."""
    return " ".join(_MARKUP.sub(r"\\\g<0>", words).split())


# -- words ------------------------------------------------------------------------------------


def _short(words: Sequence[str], most: int) -> list[str]:
    return [*words[:most], *([f"… {len(words) - most} more"] if len(words) > most else [])]


def _at(seconds: float) -> str:
    """A time after the change: ``+5 s``."""
    return f"+{span(seconds) if seconds >= 0.001 else '0 s'}"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _plural(kind: str) -> str:
    return f"{kind}s" if not kind.endswith("s") else kind
