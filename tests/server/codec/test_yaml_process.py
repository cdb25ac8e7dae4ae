"""Large YAML documents are decoded in a process of their own, which may end at any time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.api import go_yaml
from steersman.api.go_yaml import MalformedDocument
from steersman.server.codec.yaml_process import ProcessEnded, YamlProcess


@pytest.fixture(scope="module")
def process() -> Iterator[YamlProcess]:
    process = YamlProcess()
    yield process
    process.end()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"a: 1\n",
        b"a: 1\na: 2\nb: {c: 3, c: 4}\n",
        b"[18446744073709551615, -9223372036854775808, 1e400, .inf, .nan, 0x1f, 1_000]",
        b"base: &x {a: [yes, ~, '1']}\ncopy: *x\nmerged: {<<: *x, b: 2}\n",
        "text: |\n  Grüße, 世界 \U0001f600\n".encode(),
        b'escaped: "\\ud83d\\ude00 \\x41 \\0"\n',
        b"value: !!binary aGVsbG8=\n",
        b"{" * 200,
    ],
)
def test_it_decodes_as_this_process_does(process: YamlProcess, text: bytes) -> None:
    assert outcome(process.decode, text) == outcome(go_yaml.decode, text)


def outcome(decode: Callable[[bytes], Any], text: bytes) -> str:
    try:
        return repr(decode(text))
    except MalformedDocument as error:
        return str(error)


def test_a_process_that_was_killed_is_replaced(process: YamlProcess) -> None:
    assert process.decode(b"a: 1") == ({"a": 1}, ())
    first = process.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert process.decode(b"a: 2") == ({"a": 2}, ())
    assert process.pid != first


def test_a_process_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    process = YamlProcess()
    with pytest.raises(ProcessEnded):
        process.decode(b"a: 1")
    assert process.pid is None


def test_an_ended_process_starts_again_with_the_next_document() -> None:
    process = YamlProcess()
    process.end()
    for _ in range(2):
        assert process.decode(b"a: 1") == ({"a": 1}, ())
        assert process.pid is not None
        process.end()
        assert process.pid is None
