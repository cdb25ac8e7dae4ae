"""Settings for all tests.

Property tests draw the same examples every time, so a failure is never a matter of luck or of a busy
machine; ``HYPOTHESIS_PROFILE=explore`` draws new ones.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

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
    """Take the log handlers of a program that ran in this process off.

    They write to a descriptor that pytest closes after the test, and that another file may get next.
    """
    yield
    root = logging.getLogger()
    ours = [each for each in root.handlers if type(each).__module__.startswith("steersman.")]
    if ours:
        root.handlers[:] = [each for each in root.handlers if each not in ours]
        root.setLevel(logging.WARNING)
