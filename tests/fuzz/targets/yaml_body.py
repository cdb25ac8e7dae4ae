"""YAML bodies: read as JSON where they are JSON, read back when written, and within the limits of depth and size."""

from __future__ import annotations

import sys

import msgspec
import yaml
from hypothesis import strategies as st

from steersman.api.go_yaml import MalformedDocument
from steersman.api.nesting import MAX_DEPTH, depth_of
from steersman.server.codec.json_yaml import decode_json, decode_yaml
from tests.fuzz.documents import equal, values
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    try:
        document, duplicates = decode_yaml(data)
    except MalformedDocument:
        return
    assert depth_of(document) <= MAX_DEPTH
    text = msgspec.json.encode(document)
    assert equal(decode_json(text), document)
    if not duplicates:
        _agrees_with_json(data, document)
    if len(text) <= 4 * len(data):
        # Quoted, with a tag for each scalar: PyYAML has other rules for what a plain scalar is. In one line: where PyYAML
        # breaks a string after a quote, it writes a backslash too many.
        written = yaml.dump(
            document, Dumper=yaml.SafeDumper, default_style='"', allow_unicode=True, width=sys.maxsize
        )
        assert equal(decode_yaml(written.encode())[0], document)


def _agrees_with_json(data: bytes, document: object) -> None:
    try:
        as_json = decode_json(data)
    except MalformedDocument:
        return
    assert equal(as_json, document)


@st.composite
def _written(draw: st.DrawFn) -> bytes:
    """A document in one of YAML's styles, with an anchor and an alias in some."""
    names = st.sampled_from(("a", "b", "yes", "1", "<<", "null", "1.5", "=", "a b", "~"))
    document = draw(values(names))
    style = draw(st.sampled_from((None, "'", '"', "|", ">")))
    flow = draw(st.sampled_from((None, True, False)))
    if draw(st.booleans()):
        # PyYAML writes an object that occurs twice as an anchor and an alias.
        document = {"x": document, "y": [document, document]}
    return yaml.dump(
        document, Dumper=yaml.SafeDumper, default_style=style, default_flow_style=flow, allow_unicode=True
    ).encode()


TARGET = Target(
    name="yaml_body",
    check=check,
    seeds=(
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {}}\ndata:\n  k: |\n    x\n    y\n",
        b'{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "\\u00e9", "b": "1"}}',
        b"a: &a {x: 1, y: [~, yes, 0o17, 0x1F, 1e3, .5, 1_000]}\nb:\n  <<: *a\n  y: !!str 2\nc: [*a, *a]\n---\nd\n",
        b"a0: &a0 [x,x,x]\na1: &a1 [*a0,*a0,*a0]\na2: &a2 [*a1,*a1,*a1]\na3: [*a2,*a2,*a2]\n",
        b"? !!binary aGk=\n: !local x\n18446744073709551616: 9999999999999999999999\n-.inf: .nan\n",
        b"%YAML 1.1\n%TAG !e! tag:e.com,2000:\n---\n!e!x {? a : b, ? [c] : d, }\n",
    ),
    strategy=_written(),
    dictionary=(
        b"<<: *a",
        b"&a ",
        b"*a",
        b"!!str ",
        b"!!float ",
        b"!!int ",
        b"!!null ",
        b"!!binary ",
        b"---\n",
        b"...\n",
        b": ",
        b"- ",
        b"? ",
        b"|\n",
        b">-\n",
        b"{",
        b"}",
        b"[",
        b"]",
        b", ",
        b"'",
        b'"',
        b"\\x41",
        b"\\ud83d\\ude00",
        b"#",
        b"\t",
        b"\n  ",
        b"1e400",
        b"0x",
        b"0b1",
        b"9" * 30,
        b".inf",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\x00",
    ),
    # Aliases may multiply the nodes of any document up to the limit.
    seconds_per_byte=1e-3,
    memory_per_byte=40_000,
)  # fmt: skip
