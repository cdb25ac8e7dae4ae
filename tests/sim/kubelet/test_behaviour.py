"""What containers do, read off their commands and annotations."""

from __future__ import annotations

import pytest

from steersman.sim.kubelet.behaviour import FOREVER, PREFIX, Behaviour, behaviour, parse, seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", 5.0),
        ("5s", 5.0),
        ("250ms", 0.25),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("", None),
        ("soon", None),
        ("5x", None),
        ("5 s", None),
        ("-5", None),
    ],
)
def test_spans_of_time_are_read(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("true",), Behaviour(0.0, 0)),
        (("/bin/false",), Behaviour(0.0, 1)),
        (("sleep", "5"), Behaviour(5.0, 0)),
        (("sleep", "infinity"), FOREVER),
        (("exit", "3"), Behaviour(0.0, 3)),
        (("sh", "-c", "sleep 3; exit 2"), Behaviour(3.0, 2)),
        (("/bin/sh", "-ec", "echo hello && sleep 1 && sleep 2"), Behaviour(3.0, 0)),
        (("sh", "-c", "false && sleep 100"), Behaviour(0.0, 1)),
        (("sh", "-c", "true || sleep 100"), Behaviour(0.0, 0)),
        (("sh", "-c", "exit 4; sleep 100"), Behaviour(0.0, 4)),
        (("sh", "-c", "sleep 1\nexec sleep 2"), Behaviour(3.0, 0)),
        (("sh", "-c", "while true; do sleep 1; done"), None),
        (("nginx", "-g", "daemon off;"), None),
        (("sleep", "${N}"), None),
        ((), None),
    ],
)
def test_simple_commands_are_taken_at_their_word(
    command: tuple[str, ...], expected: Behaviour | None
) -> None:
    assert parse(command) == expected


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({}, FOREVER),
        ({"runs": "5"}, Behaviour(5.0, 0)),
        ({"runs": "5", "exit-code": "2"}, Behaviour(5.0, 2)),
        ({"exit-code": "2"}, Behaviour(0.0, 2)),
        ({"runs.main": "7", "runs": "5"}, Behaviour(7.0, 0)),
        ({"runs.other": "7"}, FOREVER),
        ({"runs": "forever"}, FOREVER),
        ({"exit-code": "none"}, FOREVER),
    ],
)
def test_annotations_say_it_outright(notes: dict[str, str], expected: Behaviour) -> None:
    annotations = {PREFIX + name: text for name, text in notes.items()}
    assert behaviour("main", (), annotations) == expected


def test_an_annotation_wins_over_the_command() -> None:
    assert behaviour("main", ("sleep", "5"), {PREFIX + "runs": "forever"}) == FOREVER
