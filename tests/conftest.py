"""Settings for all tests.

Property tests draw the same examples every time, so a failure is never a matter of luck or of a busy
machine; ``HYPOTHESIS_PROFILE=explore`` draws new ones.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.harness.logs import logging_as_before

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("steady", CALM, derandomize=True)
settings.register_profile("explore", CALM, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


LONG = 100
"""Characters of a value that may name a test. Tokens and certificates are longer, and others in every process."""


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test for what its value is, where the value itself would be too long to read."""
    return argname if isinstance(val, str | bytes) and len(val) > LONG else None


@pytest.fixture(autouse=True)
def _logging_ends_with_its_test() -> Iterator[None]:
    with logging_as_before():
        yield
