"""Times in RFC 3339 as Go's ``time.Parse(time.RFC3339, …)`` reads them.

Go is more lenient than the RFC: an hour may have one digit, a fraction may begin with a comma, and an offset may be of
24 hours or 60 minutes. A time that is valid for kube-apiserver must not be an invalid one here, or a token would be
taken for expired.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_LEAP_YEAR = 4
_INVALID = "not a time in RFC 3339"


def parse_rfc3339(text: str) -> datetime:
    """Parse a time, in UTC and to the microsecond. Raises `ValueError`.

    A time before the year 1 or after the year 9999, which no datetime can hold, is the earliest or latest one.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(_INVALID)
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    microsecond = int((match[7] or "")[:6].ljust(6, "0"))
    hours, minutes = int(match[9] or 0), int(match[10] or 0)
    if hours > 24 or minutes > 60:
        raise ValueError(_INVALID)
    try:
        # Go has a year 0, which is a leap year.
        time = datetime(year or _LEAP_YEAR, month, day, hour, minute, second, microsecond, tzinfo=UTC)
    except ValueError:
        raise ValueError(_INVALID) from None
    if year == 0:
        return _EARLIEST
    offset = timedelta(hours=hours, minutes=minutes)
    try:
        return time + offset if match[8] == "-" else time - offset
    except OverflowError:
        return _LATEST if match[8] == "-" else _EARLIEST
