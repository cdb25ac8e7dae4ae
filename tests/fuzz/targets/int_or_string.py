"""IntOrString values, such as ``25%`` of a number of replicas, against exact arithmetic."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from hypothesis import strategies as st

from steersman.api.intstr import scaled
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    """Lines: a value, and the number it is a percentage of."""
    value, _, rest = data.decode("utf-8", "replace").partition("\n")
    total = int(rest[:9]) if re.fullmatch(r"-?[0-9]{1,8}", rest[:9]) else 10
    assert scaled(total, 5, round_up=True) == total
    match = re.fullmatch(r"([+-]?[0-9]{1,18})%", value)
    for round_up in (True, False):
        try:
            got = scaled(value, total, round_up=round_up)
        except ValueError:
            assert match is None
            continue
        assert match is not None
        exact = Fraction(int(match[1]) * total, 100)
        assert got == (math.ceil(exact) if round_up else math.floor(exact))


TARGET = Target(
    name="int_or_string",
    check=check,
    seeds=(b"25%\n10", b"-1%\n7", b"+100%\n3", b"%\n1", b"5\n1", b"999999999999999999%\n-5"),
    strategy=st.builds(
        "{}%\n{}".format, st.integers(-(10**20), 10**20) | st.just(""), st.integers(-(10**7), 10**7)
    ).map(str.encode),
    dictionary=(b"%", b"-", b"+", b"\n", b"\xd9\xa3"),
    max_bytes=256,
)
