"""Links between rounds: an event leads to the round whose write caused it, and a write to the rounds that it caused.

The answer to a write has the resourceVersion of the watch event that it causes. An accepted delete has none: the next
event about its object is linked to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from steersman.api.scheme import Key
from steersman.runtime.causes import Event
from steersman.runtime.trace import Numbered, Trace

MAX_LINKS = 32_768
"""Writes that are remembered. The oldest are forgotten first."""


class Links:
    """An index of a trace's writes, brought up to date when it is asked, so that recording a round costs nothing."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._indexed = 0
        """The number of the last round that is indexed."""
        self._by_version: dict[tuple[str, str], int] = {}
        """Resource and resourceVersion of a write -> the number of its round."""
        self._deletes: dict[tuple[str, Key], int] = {}
        """Resource and key of an accepted delete -> the number of its round."""
        self._by_object: dict[tuple[str, Key], list[tuple[int, int]]] = {}
        """Resource and key -> resourceVersions written and their rounds, for causes that span several events."""

    def refresh(self) -> None:
        """Index the rounds that ended since the last call."""
        rounds = self._trace.numbered(after=self._indexed)
        self._indexed = self._trace.last
        for number, round_ in rounds:
            for write in round_.writes:
                resource = write.kind.resource
                if not write.resource_version:
                    self._deletes[resource, write.key] = number
                    continue
                self._by_version[resource, write.resource_version] = number
                if write.resource_version.isdecimal():
                    written = self._by_object.setdefault((resource, write.key), [])
                    written.append((int(write.resource_version), number))
        _trim(self._by_version)
        _trim(self._deletes)
        _trim(self._by_object)

    def writer(self, event: Event, by: int) -> int:
        """The number of the round whose write caused an event; 0: another client's, or no longer known.

        ``by`` is the number of the round that the event caused: a delete of a later round is none of its causes.
        """
        resource = event.kind.resource
        exact = self._by_version.get((resource, event.last)) or self._by_version.get((resource, event.first))
        if exact:
            return exact
        if event.first != event.last and event.first.isdecimal() and event.last.isdecimal():
            # One cause for several events: any write among them.
            written = sorted(self._by_object.get((resource, event.key), ()))
            place = bisect_left(written, (int(event.first), 0))
            if place < len(written) and written[place][0] <= int(event.last):
                return written[place][1]
        if event.type == "added":
            return 0
        delete = self._deletes.get((resource, event.key), 0)
        return delete if delete < by else 0

    def caused(self, rounds: Iterable[Numbered]) -> dict[int, list[int]]:
        """The numbers of the rounds that each round caused through its writes, among ``rounds``."""
        found: dict[int, list[int]] = {}
        for number, round_ in rounds:
            for writer in dict.fromkeys(self.writer(event, number) for event in round_.events):
                if writer:
                    found.setdefault(writer, []).append(number)
        return found


def _trim(
    index: dict[tuple[str, str], int]
    | dict[tuple[str, Key], int]
    | dict[tuple[str, Key], list[tuple[int, int]]],
) -> None:
    """Drop the oldest entries of an index that has grown too large."""
    while len(index) > MAX_LINKS:
        del index[next(iter(index))]  # type: ignore[arg-type]
