"""The numbers of a Deployment's spec."""

from __future__ import annotations

import pytest

from steersman.controllers.deployment.limits import Limits, deadline, history
from tests.harness.workloads import deployment


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "most", "fewest"),
    [
        pytest.param(4, "25%", "25%", 5, 3, id="per cents"),
        pytest.param(3, "25%", "25%", 4, 3, id="a surge is rounded up, what may be missing down"),
        pytest.param(10, 2, 3, 12, 7, id="numbers"),
        pytest.param(2, 0, "1%", 2, 1, id="both come to nothing: one may be missing"),
        pytest.param(1, "0%", "1%", 1, 0, id="so also for a single pod"),
        pytest.param(2, "1%", "25%", 3, 2, id="a surge is enough"),
        pytest.param(1, "1%", "0%", 2, 1, id="even of one per cent"),
        pytest.param(2, 1, 5, 3, 0, id="no more can be missing than are wanted"),
        pytest.param(0, 3, 2, 3, 0, id="nothing wanted, nothing missing"),
        pytest.param(5, "100%", "0%", 10, 5, id="twice as many"),
    ],
)
def test_surge_and_unavailability_are_resolved(
    replicas: int, surge: int | str, unavailable: int | str, most: int, fewest: int
) -> None:
    limits = Limits.of(deployment(replicas, surge=surge, unavailable=unavailable))
    assert (limits.most, limits.fewest) == (most, fewest)


def test_recreate_never_surges_and_counts_every_missing_pod() -> None:
    limits = Limits.of(deployment(4, strategy="Recreate"))
    assert (limits.most, limits.fewest) == (4, 4)


@pytest.mark.parametrize(("given", "meant"), [(None, None), (2**31 - 1, None), (600, 600), (0, 0)])
def test_the_largest_number_means_for_ever(given: int | None, meant: int | None) -> None:
    spec = deployment(deadline=given, history=given)
    assert deadline(spec) == meant
    assert history(spec) == meant
