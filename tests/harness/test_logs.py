"""Logging that a program configured ends with its test."""

from __future__ import annotations

import io
import logging

import pytest

from steersman.manager import console
from tests.harness.logs import logging_as_before


def test_a_quiet_program_leaves_neither_its_handler_nor_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    # A stream without a descriptor, as pytest's own: its handler is one of the standard library's.
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with logging_as_before():
        console.configure(quiet=True)
        assert (root.level, len(root.handlers)) == (logging.ERROR, 1)
        pytests = [each for each in handlers if type(each).__module__.startswith("_pytest.")]
        root.handlers.extend(pytests)
    assert (root.level, root.handlers) == (level, pytests)
    root.handlers[:] = handlers


def test_a_logger_that_was_cut_off_reaches_the_root_again() -> None:
    log = logging.getLogger("steersman")
    before = log.level, log.propagate, list(log.handlers)
    with logging_as_before():
        log.propagate = False
        log.setLevel(logging.CRITICAL)
        log.addHandler(logging.NullHandler())
    assert (log.level, log.propagate, log.handlers) == before
