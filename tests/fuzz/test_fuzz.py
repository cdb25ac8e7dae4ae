"""Every fuzz target, for a short while: the inputs that are kept, some mutated from them, and some drawn.

``./dev fuzz`` runs the same targets for as long as there is time.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.bounds import examine
from tests.fuzz.engine import draw
from tests.fuzz.mutation import Mutator
from tests.fuzz.target import load, names

MUTATED = 200
DRAWN = 100
SEED = 1


@pytest.mark.parametrize("name", names())
def test_inputs_that_are_kept_break_nothing(name: str) -> None:
    target = load(name)
    for data in target.kept_inputs():
        examine(target, data)


@pytest.mark.parametrize("name", names())
def test_mutated_inputs_break_nothing(name: str) -> None:
    target = load(name)
    random = Random(SEED)
    mutator = Mutator(random, target.dictionary, target.max_bytes)
    kept = target.kept_inputs()
    for _ in range(MUTATED):
        data = mutator.mutate(random.choice(kept), random.choice(kept))
        try:
            examine(target, data)
        except Exception:
            pytest.fail(f"seed {SEED}, input {data!r}")


@pytest.mark.parametrize("name", names())
def test_drawn_inputs_break_nothing(name: str) -> None:
    target = load(name)
    if target.strategy is None:
        pytest.skip("the target has no strategy")
    for data in draw(target.strategy, DRAWN, SEED):
        examine(target, data)
