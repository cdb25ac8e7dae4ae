"""The fuzzing harness: it finds what breaks an invariant or a bound, keeps the smallest such input, and repeats itself."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import strategies as st

from tests.fuzz import bounds
from tests.fuzz.bounds import Finding, examine
from tests.fuzz.engine import Session, draw, fuzz_by_mutation
from tests.fuzz.mutation import Mutator, minimize
from tests.fuzz.target import Target, load, names


def refuse_a_quote(data: bytes) -> None:
    assert b"'" not in data, "a quote"


QUOTES = Target("quotes", refuse_a_quote, seeds=(b"plain words, rather many of them",), dictionary=(b"'",))


def test_a_finding_is_minimized_and_kept_with_its_reason(tmp_path: Path) -> None:
    said: list[str] = []
    session = Session(QUOTES, 60, 1, said.append, tmp_path)
    with pytest.raises(Finding, match="a quote"):
        fuzz_by_mutation(session)
    (kept,) = (file for file in (tmp_path / "quotes").iterdir() if not file.suffix)
    assert kept.read_bytes() == b"'"
    assert "a quote" in kept.with_suffix(".reason").read_text()
    assert QUOTES.kept_inputs(tmp_path) == [*QUOTES.seeds, b"'"]
    assert any(str(kept) in line for line in said)


def test_a_run_without_findings_ends_when_the_time_is_up(tmp_path: Path) -> None:
    target = Target("calm", lambda data: None, seeds=(b"a",), strategy=st.binary(max_size=4))
    session = Session(target, 0, 1, lambda line: None, tmp_path)
    fuzz_by_mutation(session)
    assert session.executions > 0
    assert not any(tmp_path.iterdir())


def test_an_input_that_never_ends_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BASE_SECONDS", 0.01)

    def loop(data: bytes) -> None:
        while True:
            try:
                while data:
                    pass
            except Exception:
                pass

    with pytest.raises(Finding, match=r"1 bytes take more than 0\.01 s of CPU time"):
        examine(Target("loop", loop, seeds=()), b"a")


def test_an_input_that_takes_much_memory_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MEMORY_SHARE", 1)
    hoard = Target("hoard", lambda data: bytes(10 * bounds.BASE_MEMORY), seeds=())
    with pytest.raises(Finding, match="bytes of memory"):
        examine(hoard, b"a")


def test_the_same_seed_mutates_and_draws_the_same_inputs() -> None:
    def mutated() -> list[bytes]:
        mutator = Mutator(Random(7), (b"token",), 64)
        return [mutator.mutate(b"some bytes 12", b"others") for _ in range(200)]

    assert mutated() == mutated()
    assert all(len(data) <= 64 for data in mutated())
    assert len(set(mutated())) > 100
    assert draw(st.binary(), 20, 3) == draw(st.binary(), 20, 3)


def test_an_input_is_minimized_to_what_matters() -> None:
    assert minimize(b"x" * 50 + b"a" + b"y" * 30 + b"b", lambda data: b"a" in data and b"b" in data) == b"ab"


def test_every_target_has_seeds_that_fit_its_length() -> None:
    for name in names():
        target = load(name)
        assert target.seeds, name
        assert max(map(len, target.kept_inputs())) <= target.max_bytes, name
