"""Sets of completion indexes, as statuses and success policies write them: ``0-3,5,8``."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import msgspec

_RANGE = re.compile(r"\+?([0-9]{1,18})(?:-\+?([0-9]{1,18})(?:-.*)?)?")


class Indexes(msgspec.Struct, frozen=True):
    """A set of indexes as ranges, both ends included: in order, and never next to each other."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Indexes:
        """Just these."""
        return cls(_joined((index, index) for index in sorted(indexes)))

    @classmethod
    def parse(cls, text: str, completions: int) -> Indexes:
        """What a text says, as far as that is below ``completions``. What cannot be read is passed over."""
        found = []
        for part in text.split(",") if text else ():
            match = _RANGE.fullmatch(part)
            if match is None:
                continue
            first = int(match[1])
            last = min(first if match[2] is None else int(match[2]), completions - 1)
            if first <= last:
                found.append((first, last))
        return cls(_joined(sorted(found)))

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes(_joined(sorted((*self.ranges, *other.ranges))))

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        at = bisect_left(self.ranges, index, key=lambda one: one[1])
        return at < len(self.ranges) and self.ranges[at][0] <= index

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
            for first, last in self.ranges
        )

    def shared(self, other: Indexes) -> int:
        """How many indexes both have."""
        count, mine, theirs = 0, 0, 0
        while mine < len(self.ranges) and theirs < len(other.ranges):
            (first, last), (start, end) = self.ranges[mine], other.ranges[theirs]
            count += max(0, min(last, end) - max(first, start) + 1)
            if last <= end:
                mine += 1
            if end <= last:
                theirs += 1
        return count

    def lacking(self, completions: int, count: int) -> list[int]:
        """The first so many indexes below ``completions`` that are not here."""
        found: list[int] = []
        candidate = 0
        for first, last in (*self.ranges, (completions, completions)):
            end = min(first, completions, candidate + count - len(found))
            found.extend(range(candidate, end))
            candidate = max(candidate, last + 1)
        return found


def _joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges in order, with those that touch made one."""
    joined: list[tuple[int, int]] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
