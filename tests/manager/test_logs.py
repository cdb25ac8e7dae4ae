"""Lines as klog and Kubernetes' JSON logger write them."""

from __future__ import annotations

import io
import itertools
import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.api.go_quote import quote
from steersman.api.verbosity import V, verbosity
from steersman.manager.logs import Json, Klog, LoggingOptions, RateLimit, handlers


def record(
    message: str,
    values: dict[str, Any] | None = None,
    *,
    level: int = logging.INFO,
    at: float = 0.0,
    error: BaseException | None = None,
    file: str = "/src/steersman/runtime/controller_runner.py",
    line: int = 42,
) -> logging.LogRecord:
    made = logging.LogRecord("steersman", level, file, line, message, (), None)
    made.created = at
    if values is not None:
        made.values = values
    if error is not None:
        made.exc_info = (type(error), error, error.__traceback__)
    return made


def body(line: str) -> str:
    return line.partition("] ")[2]


def test_a_line_begins_as_klogs_do() -> None:
    line = Klog().format(record("hello"))
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ controller_runner\.py:42\] hello", line)
    assert f"{os.getpid():>7} controller_runner" in line


@pytest.mark.parametrize(
    ("level", "letter"),
    [
        (V[6], "I"),
        (logging.INFO, "I"),
        (logging.WARNING, "W"),
        (logging.ERROR, "E"),
        (logging.CRITICAL, "F"),
    ],
)
def test_the_first_letter_is_the_severity(level: int, letter: str) -> None:
    assert Klog().format(record("hello", level=level))[0] == letter


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ({"controller": "job-controller"}, '"Starting" controller="job-controller"'),
        ({"milliseconds": 4}, '"Starting" milliseconds=4'),
        ({"on": True, "off": None}, '"Starting" on=true off=null'),
        ({"gates": ["A", "B"]}, '"Starting" gates=["A","B"]'),
        ({"said": 'a "word"'}, '"Starting" said="a \\"word\\""'),
        ({"lines": "one\ntwo"}, '"Starting" lines=<\n\tone\n\ttwo\n >'),
        ({"lines": "one\ntwo\n"}, '"Starting" lines=<\n\tone\n\ttwo\n >'),
        ({"lines": "one\n\rtwo\x1b"}, '"Starting" lines=<\n\tone\n\t\\x0dtwo\\x1b\n >'),
        ({"logger": "job-controller", "err": "refused"}, '"Starting" err="refused" logger="job-controller"'),
    ],
)
def test_values_are_written_as_klog_writes_them(values: dict[str, Any], written: str) -> None:
    assert body(Klog().format(record("Starting", values))) == written


def raised() -> ValueError:
    try:
        raise ValueError("odd")
    except ValueError as error:
        return error


def test_an_exception_is_told_with_where_it_came_from() -> None:
    text = body(Klog().format(record("the round failed", level=logging.ERROR, error=raised())))
    assert text.startswith('"the round failed" err="ValueError: odd" stack=<\n\tTraceback')
    assert text.endswith("\n >")


def test_json_has_the_keys_and_the_milliseconds_of_upstream() -> None:
    line = json.loads(Json().format(record("hello", {"key": "default/a"}, level=V[4], at=1580306777.04728)))
    assert line == {
        "ts": 1580306777047.28,
        "caller": "runtime/controller_runner.py:42",
        "msg": "hello",
        "v": 4,
        "key": "default/a",
    }


def test_json_errors_have_an_error_and_no_verbosity() -> None:
    line = json.loads(Json().format(record("failed", {"err": "refused"}, level=logging.ERROR)))
    assert line["err"] == "refused"
    assert "v" not in line


def test_verbosities_are_levels_and_back() -> None:
    assert [verbosity(level) for level in V] == list(range(11))
    assert verbosity(logging.ERROR) == 0


class Stream(io.StringIO):
    """Standard output with a file behind it."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Stream]:
    with io.FileIO(tmp_path / "out", "w") as file:
        yield Stream(file)


def tell(said: LoggingOptions, out: io.StringIO, *records: logging.LogRecord) -> tuple[str, str]:
    """What the two streams are told of some records."""
    err = io.StringIO()
    for handler in handlers(said, out, err):
        for each in records:
            handler.handle(each)
    return out.getvalue(), err.getvalue()


def test_without_a_word_everything_goes_to_standard_error() -> None:
    out, err = tell(
        LoggingOptions(), io.StringIO(), record("info"), record("warn", level=30), record("error", level=40)
    )
    assert out == ""
    assert [line[0] for line in err.splitlines()] == ["I", "W", "E"]


@pytest.mark.parametrize(("format", "informs"), [("text", 1), ("json", 2)])
def test_split_streams_have_information_on_standard_output(format: Any, informs: int) -> None:
    out, err = tell(
        LoggingOptions(format, split=True),
        io.StringIO(),
        record("info"),
        record("warn", level=30),
        record("error", level=40),
    )
    assert (len(out.splitlines()), len(err.splitlines())) == (informs, 3 - informs)


def test_what_is_held_back_is_written_when_there_is_enough_of_it_or_on_demand(
    out: Stream, tmp_path: Path
) -> None:
    info, _ = handlers(LoggingOptions(split=True, buffer=4096, flush=3600), out, io.StringIO())
    info.handle(record("one"))
    assert (tmp_path / "out").read_text() == ""
    info.flush()
    assert (tmp_path / "out").read_text().endswith("] one\n")
    for _ in range(200):
        info.handle(record("a line of some length"))
    assert len((tmp_path / "out").read_text()) > 4096


@pytest.mark.parametrize(
    ("modules", "file", "level", "written"),
    [
        ((("host", 4),), "/x/host.py", 4, True),
        ((("host", 4),), "/x/host.py", 5, False),
        ((("host", 4),), "/x/shell.py", 4, False),
        ((("h*t", 4),), "/x/host.py", 4, True),
        ((("h??t", 4), ("*", 6)), "/x/shell.py", 6, True),
        ((("host", 1), ("*", 6)), "/x/host.py", 6, False),
        ((), "/x/host.py", 2, True),
        ((("host", 0),), "/x/shell.py", 2, True),
    ],
)
def test_vmodule_says_how_much_a_file_logs(modules: Any, file: str, level: int, written: bool) -> None:
    if not modules:
        # Without it the level of the root logger decides, before any handler is asked.
        assert tell(LoggingOptions(verbosity=2), io.StringIO(), record("x", level=V[level], file=file))[1]
        return
    said = LoggingOptions(verbosity=2, modules=modules)
    assert bool(tell(said, io.StringIO(), record("x", level=V[level], file=file))[1]) is written


def written(times: list[float], message: str = "no answer") -> list[tuple[float, int]]:
    """When a warning that comes at these times is written, and how many were left out before."""
    rate_limit = RateLimit()
    found = []
    for at in times:
        each = record(message, level=logging.WARNING, at=at)
        if rate_limit.filter(each):
            found.append((at, getattr(each, "repeated", 0)))
    return found


def test_a_warning_that_comes_again_and_again_is_written_less_and_less_often() -> None:
    found = written([tick / 10 for tick in range(6001)])  # ten minutes, ten times a second
    assert len(found) == 10
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(found)]
    assert gaps == sorted(gaps)
    assert sum(left_out for _, left_out in found) + len(found) == found[-1][0] * 10 + 1


def test_after_a_silence_a_warning_is_new_again() -> None:
    assert written([0, 0.1, 0.2, 60, 60.1]) == [(0, 0), (60, 0)]


def test_how_many_were_left_out_is_told() -> None:
    each = record("no answer", level=logging.WARNING)
    each.repeated = 7
    assert body(Klog().format(each)) == '"no answer" repeated=7'


def test_other_warnings_and_all_information_are_written() -> None:
    rate_limit = RateLimit()
    for number in range(3):
        assert rate_limit.filter(record(f"no answer from {number}", level=logging.WARNING))
        assert rate_limit.filter(record("refused", {"key": f"default/{number}"}, level=logging.WARNING))
        assert rate_limit.filter(record("Starting"))


def test_what_is_remembered_of_warnings_is_bounded() -> None:
    rate_limit = RateLimit()
    for number in range(RateLimit.CAPACITY + 10):
        rate_limit.filter(record(f"no answer from {number}", level=logging.WARNING))
    assert len(rate_limit._lines) == RateLimit.CAPACITY


def test_a_fixed_message_goes_before_the_sentence() -> None:
    each = record("a sentence about default/a", {"key": "default/a"})
    each.brief = "The round failed"
    assert body(Klog().format(each)) == '"The round failed" key="default/a"'
    assert json.loads(Json().format(each))["msg"] == "The round failed"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a "b" \\', r'"a \"b\" \\"'),
        ("line\nbreak\ttab\r", r'"line\nbreak\ttab\r"'),
        ("\x1b[31mred\x00\x7f", r'"\x1b[31mred\x00\x7f"'),
        ("grüße 日本 🙂", '"grüße 日本 🙂"'),
        ("\u2028\ue000\U000e0001", r'"\u2028\ue000\U000e0001"'),
    ],
)
def test_texts_are_quoted_as_go_quotes_them(text: str, quoted: str) -> None:
    assert quote(text) == quoted
    assert body(Klog().format(record("m", {"k": text}))).startswith(
        f'"m" k={quoted}' if "\n" not in text else '"m" k=<'
    )


def test_nobody_can_write_lines_of_their_own() -> None:
    line = Klog().format(record("refused: x\nI0101 00:00:00.000000       1 forged.py:1] all is well"))
    assert "\n" not in line
