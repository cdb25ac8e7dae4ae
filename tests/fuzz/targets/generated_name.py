"""Generated names: within their length, made of the characters of names, and the same for the same seed."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from steersman.api.generated_names import (
    ALPHANUMS,
    SUFFIX_LENGTH,
    child,
    fnv32,
    fnv32a,
    generate,
    safe_encode,
    suffix,
)
from steersman.api.label_syntax import MAX_NAME, MAX_SUBDOMAIN, subdomain_errors
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    base, _, rest = data.decode("utf-8", "replace").partition("\n")
    seed = len(data)
    name = generate(base, Random(seed))
    assert name == generate(base, Random(seed))
    assert len(name) <= MAX_NAME
    assert name[:-SUFFIX_LENGTH] == base[: MAX_NAME - SUFFIX_LENGTH]
    assert set(name[-SUFFIX_LENGTH:]) <= set(ALPHANUMS)
    if not subdomain_errors(f"{base}x") and len(base) <= MAX_NAME - SUFFIX_LENGTH:
        assert not subdomain_errors(name)
    made = child(base, suffix(Random(seed)))
    assert made.endswith(f"-{suffix(Random(seed))}")
    assert len(made) <= max(MAX_SUBDOMAIN, SUFFIX_LENGTH + 1)
    assert len(safe_encode(rest)) == len(rest)
    assert set(safe_encode(rest)) <= set(ALPHANUMS)
    for fnv in (fnv32, fnv32a):
        assert 0 <= fnv(data) < 2**32
        assert fnv(data[3:], fnv(data[:3])) == fnv(data)


TARGET = Target(
    name="generated_name",
    check=check,
    seeds=(b"web-\nabc", b"a" * 300, b"\n", b"x.y-z-\n\xc3\xa9"),
    strategy=st.builds(
        "{}\n{}".format, st.text(st.sampled_from("a-.é0"), max_size=70), st.text(max_size=10)
    ).map(lambda text: text.encode("utf-8", "replace")),
)
