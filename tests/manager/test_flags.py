"""Flags are read as pflag reads them."""

import pytest

from steersman.api.go_duration import format_duration, parse_duration
from steersman.manager.flag_types import BOOL, DURATION, INT32, STRING, STRINGS
from steersman.manager.flags import Option, UsageError, parse, usage

OPTIONS = (
    Option("leader-elect", BOOL, True, "Elect."),
    Option("controllers", STRINGS, ("*",), "Which."),
    Option("kubeconfig", STRING, "", "Where.", "Misc"),
    Option("burst", INT32, 30, "How many."),
    Option("period", DURATION, 2.0, "How long."),
    Option("v", INT32, 0, "How much.", "Logs", "v"),
)


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        ([], "leader-elect", True),
        (["--leader-elect"], "leader-elect", True),
        (["--leader-elect=false"], "leader-elect", False),
        (["--leader-elect=F"], "leader-elect", False),
        (["--controllers", "-nodeipam"], "controllers", ("-nodeipam",)),
        (["--controllers=*,-a", "--controllers", "b"], "controllers", ("*", "-a", "b")),
        (["--controllers="], "controllers", ()),
        (["--kubeconfig", "/a=b"], "kubeconfig", "/a=b"),
        (["--kubeconfig=/a=b"], "kubeconfig", "/a=b"),
        (["--burst=0x10"], "burst", 16),
        (["--leader_elect=false"], "leader-elect", False),
        (["--period=1h30m"], "period", 5400.0),
        (["-v2"], "v", 2),
        (["-v=2"], "v", 2),
        (["-v", "2"], "v", 2),
        (["--v=2"], "v", 2),
        (["--v=2", "--v=3"], "v", 3),
    ],
)
def test_a_flag_is_read_as_go_reads_it(argv: list[str], name: str, value: object) -> None:
    assert parse(OPTIONS, argv)[name] == value


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--kubeconfg=x"], "unknown flag: --kubeconfg; did you mean --kubeconfig?"),
        (["--zzz"], "unknown flag: --zzz; see --help for all flags"),
        (["-x"], "unknown shorthand flag: 'x' in -x; see --help for all flags"),
        (["--burst"], "flag needs an argument: --burst"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["--=3"], "bad flag syntax: --=3"),
        (["---v"], "bad flag syntax: ---v"),
        (["-v=x"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax'),
        (
            ["--burst=4294967296"],
            'invalid argument "4294967296" for "--burst" flag: strconv.ParseInt: parsing "4294967296": value out of range',
        ),
        (
            ["--leader-elect=maybe"],
            'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (["--period=5"], 'invalid argument "5" for "--period" flag: time: missing unit in duration "5"'),
        (["--leader-elect", "false"], 'does not take any arguments, got ["false"]; write --FLAG=VALUE'),
        (["stray"], 'does not take any arguments, got ["stray"]'),
        (["--", "stray", "more"], 'does not take any arguments, got ["stray" "more"]'),
    ],
)
def test_a_bad_flag_is_one_line_that_names_it(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(OPTIONS, argv)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds", "written"),
    [
        ("0", 0.0, "0s"),
        ("10s", 10.0, "10s"),
        ("1h30m", 5400.0, "1h30m0s"),
        ("12h", 43200.0, "12h0m0s"),
        ("1m30s", 90.0, "1m30s"),
        ("1.5s", 1.5, "1.5s"),
        ("250ms", 0.25, "250ms"),
        ("-2s", -2.0, "-2s"),
        (".5s", 0.5, "500ms"),
    ],
)
def test_durations_are_read_and_written_as_go_does(text: str, seconds: float, written: str) -> None:
    assert parse_duration(text) == pytest.approx(seconds)
    assert format_duration(parse_duration(text)) == written


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'invalid duration ""'),
        ("s", 'invalid duration "s"'),
        ("1", 'missing unit in duration "1"'),
        ("1x", 'unknown unit "x" in duration "1x"'),
        ("1s 2s", 'unknown unit "s " in duration "1s 2s"'),
        ("--1s", 'invalid duration "--1s"'),
        ("9999999h", 'invalid duration "9999999h"'),
    ],
)
def test_what_is_not_a_duration_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"time: {why}"):
        parse_duration(text)


def test_the_help_shows_sections_types_and_defaults() -> None:
    text = usage(OPTIONS)
    assert "Generic flags:" in text
    assert "  -v, --v int32" in text
    assert "(default [*])" in text
    assert "How long. (default 2s)" in text
    assert "Where." in text
    assert "Where. (default" not in text
