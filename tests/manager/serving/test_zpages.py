"""``/statusz`` and ``/flagz`` in each form that upstream's own test of them asks for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from steersman.manager.serving.zpages import Page, encode_cbor, flagz, statusz

START = datetime(2026, 11, 15, 18, 39, 12, tzinfo=UTC)
FLAGS = {"a": "[x=y]", "b": ""}


def pages(cbor: bool = True) -> dict[str, Page]:
    def now() -> datetime:
        return START + timedelta(hours=1, seconds=13)

    return {
        "Statusz": statusz(START, now, "1.36.4", "1.36", cbor),
        "Flagz": flagz(lambda: FLAGS, cbor),
    }


def asks(form: str, version: str, kind: str) -> str:
    return f"application/{form};v={version};g=config.k8s.io;as={kind}"


def read(media_type: str, body: bytes) -> Any:
    if media_type == "application/yaml":
        return yaml.safe_load(body)
    if media_type == "application/cbor":
        return uncbor(body.removeprefix(b"\xd9\xd9\xf7"))[0]
    return json.loads(body)


def uncbor(data: bytes) -> tuple[Any, bytes]:
    """Reads what is written here; texts are bytes, as Kubernetes has them."""
    major, low = data[0] >> 5, data[0] & 31
    width = {24: 1, 25: 2, 26: 4, 27: 8}.get(low, 0)
    number = int.from_bytes(data[1 : 1 + width]) if width else low
    data = data[1 + width :]
    if major == 0:
        return number, data
    if major == 2:
        return data[:number].decode(), data[number:]
    found: list[Any] = []
    for _ in range(number * (2 if major == 5 else 1)):
        one, data = uncbor(data)
        found.append(one)
    return (dict(zip(found[::2], found[1::2], strict=True)) if major == 5 else found), data


@pytest.mark.parametrize("kind", ["Statusz", "Flagz"])
@pytest.mark.parametrize(
    ("accept", "version"),
    [
        ("text/plain", ""),
        ("", ""),
        ("*/*", ""),
        ("{json-foo},*/*", ""),
        ("{json-v1beta1}", "v1beta1"),
        ("{yaml-v1beta1}", "v1beta1"),
        ("{cbor-v1beta1}", "v1beta1"),
        ("{json-v1alpha1},{json-v1beta1}", "v1alpha1"),
        ("{json-v1beta1},{json-v1alpha1}", "v1beta1"),
        ("application/xml", None),
        ("application/json", None),
        ("application/json;v=v1beta1;g=config.k8s.io", None),
    ],
)
def test_a_page_comes_in_the_form_that_is_asked_for(kind: str, accept: str, version: str | None) -> None:
    for form in ("json", "yaml", "cbor"):
        for asked in ("v1beta1", "v1alpha1", "foo"):
            accept = accept.replace(f"{{{form}-{asked}}}", asks(form, asked, kind))
    answer = pages()[kind].answer(accept)
    media_type = answer.content_type.partition(";")[0]
    warned = [value for name, value in answer.headers if name == "Warning"]
    if version is None:
        assert answer.status == 406
        assert json.loads(answer.body)["reason"] == "NotAcceptable"
        return
    assert answer.status == 200
    if not version:
        assert answer.content_type == "text/plain; charset=utf-8"
        assert answer.body.decode().startswith(f"\nkube-controller-manager {kind.lower()}\nWarning: ")
        return
    document = read(media_type, answer.body)
    assert answer.content_type == f"{media_type};g=config.k8s.io;v={version};as={kind}"
    assert document["apiVersion"] == f"config.k8s.io/{version}"
    assert (document["kind"], document["metadata"]) == (kind, {"name": "kube-controller-manager"})
    if kind == "Statusz":
        assert document["paths"] == ["/configz", "/flagz", "/healthz", "/metrics"]
        assert (document["startTime"], document["uptimeSeconds"]) == ("2026-11-15T18:39:12Z", 3613)
    else:
        assert document["flags"] == {"a": "[x=y]", "b": ""}
    path = kind.lower()
    old = f'299 - "This version of the {path} endpoint is deprecated. Please use a newer version."'
    assert warned == ([old] if version == "v1alpha1" else [])


def test_a_status_reads_as_upstream_writes_it() -> None:
    lines = pages()["Statusz"].answer("").body.decode().splitlines()
    assert lines[4:6] == ["Started:  Sun Nov 15 18:39:12 UTC 2026", "Up:  1 hr 00 min 13 sec"]
    assert lines[6].startswith("Python version:  3.")
    assert lines[7:] == [
        "Binary version:  1.36.4",
        "Emulation version:  1.36",
        "Paths:  /configz /flagz /healthz /metrics",
    ]


def test_without_its_gate_there_is_no_cbor() -> None:
    answer = pages(cbor=False)["Statusz"].answer(asks("cbor", "v1beta1", "Statusz"))
    assert answer.status == 406
    assert b"accepted: application/json, application/yaml, text/plain" in answer.body


def test_numbers_of_every_size_survive_cbor() -> None:
    numbers = [0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1]
    assert uncbor(encode_cbor({"n": numbers})[3:]) == ({"n": numbers}, b"")
    assert encode_cbor({"b": -1, "a": True})[3:] == b"\xa2\x41a\xf5\x41b\x20"
