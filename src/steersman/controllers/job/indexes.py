"""Sets of completion indexes, in the notation of ``completedIndexes`` and success policies: ``0-3,5,8``."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import msgspec

_RANGE = re.compile(r"\+?([0-9]{1,18})(?:-\+?([0-9]{1,18})(?:-.*)?)?")


class Indexes(msgspec.Struct, frozen=True):
    """A set of indexes as ranges, both ends included; sorted, and never adjacent."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Indexes:
        """The set of these indexes."""
        return cls(_merged((index, index) for index in sorted(indexes)))

    @classmethod
    def parse(cls, text: str, completions: int) -> Indexes:
        """Parses the notation. Indexes from ``completions`` on and invalid parts are left out."""
        found = []
        for part in text.split(",") if text else ():
            match = _RANGE.fullmatch(part)
            if match is None:
                continue
            first = int(match[1])
            last = min(first if match[2] is None else int(match[2]), completions - 1)
            if first <= last:
                found.append((first, last))
        return cls(_merged(sorted(found)))

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes(_merged(sorted((*self.ranges, *other.ranges))))

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        at = bisect_left(self.ranges, index, key=lambda range_: range_[1])
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

    def intersection_size(self, other: Indexes) -> int:
        """The number of indexes in both sets."""
        count, left, right = 0, 0, 0
        while left < len(self.ranges) and right < len(other.ranges):
            (first, last), (start, end) = self.ranges[left], other.ranges[right]
            count += max(0, min(last, end) - max(first, start) + 1)
            if last <= end:
                left += 1
            if end <= last:
                right += 1
        return count

    def missing(self, completions: int, count: int) -> list[int]:
        """The first ``count`` indexes below ``completions`` that are not in the set."""
        found: list[int] = []
        candidate = 0
        for first, last in (*self.ranges, (completions, completions)):
            end = min(first, completions, candidate + count - len(found))
            found.extend(range(candidate, end))
            candidate = max(candidate, last + 1)
        return found


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted ranges with adjacent ones merged."""
    merged: list[tuple[int, int]] = []
    for first, last in ranges:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)
