"""Errors of malformed bodies, and of unknown and duplicate fields.

The texts are those of kube-apiserver 1.36.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from steersman.api import go_yaml
from steersman.api.errors import to_status
from steersman.api.generated import load
from steersman.api.go_yaml import MalformedDocument
from steersman.api.nesting import MAX_DEPTH
from steersman.server.apply.openapi import custom_resource_schema
from steersman.server.apply.structs import typed_schema_of
from steersman.server.codec import field_validation, json_yaml
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.codec.json_yaml import (
    NumberOutOfRange,
    PredecodedYaml,
    TooMuchYaml,
    decode_json,
    decode_yaml,
    predecode_yaml,
)

DEPLOYMENT = load("apps", "v1", "Deployment").type
SECRET = load("", "v1", "Secret").type
SERVICE = load("", "v1", "Service").type
SCHEMA = typed_schema_of(DEPLOYMENT)

BASE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "x"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


def having(path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(BASE)
    at: Any = made
    *parents, last = path.split(".")
    for name in parents:
        at = at[int(name)] if name.isdigit() else at.setdefault(name, {})
    at[int(last) if last.isdigit() else last] = value
    return made


def faults(raw: str) -> tuple[str, ...]:
    return field_validation.strict_errors(raw.encode(), json.loads(raw), SCHEMA)


# -- unknown and duplicate fields -------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("extra", "extra"),
        ("metadata.clusterName", "metadata.clusterName"),
        ("spec.foo", "spec.foo"),
        ("spec.template.spec.containers.0.foo", "spec.template.spec.containers[0].foo"),
        ("spec.strategy", None),
        ("spec.template.spec.nodeSelector", None),
    ],
)
def test_an_unknown_field_is_named_by_its_path(path: str, named: str | None) -> None:
    expected = () if named is None else (f'unknown field "{named}"',)
    assert faults(json.dumps(having(path, {"type": "Recreate"}))) == expected


def test_fields_that_come_twice_are_told_in_the_order_of_the_body() -> None:
    raw = json.dumps(BASE)
    raw = raw.replace('"name": "x"', '"name": "x", "name": "x", "labels": {"q":"1","q":"2"}')
    raw = raw.replace('"image": "i"', '"image": "i", "bar": {"a":1,"a":2}, "image": "j"')
    assert faults(raw) == (
        'duplicate field "metadata.name"',
        'duplicate field "metadata.labels.q"',
        'unknown field "spec.template.spec.containers[0].bar"',
        'duplicate field "spec.template.spec.containers[0].image"',
    )


def test_colons_in_texts_are_no_keys() -> None:
    assert faults(json.dumps(having("metadata.annotations", {"a": 'x: "y": z'}))) == ()


def test_a_fault_is_told_once_and_not_more_than_a_hundred_are() -> None:
    many = having("spec.foo", 1)
    many["spec"].update({f"f{number}": 1 for number in range(150)})
    assert len(faults(json.dumps(many))) == 100
    assert faults(json.dumps(BASE)[:-1] + ', "kind": "a", "kind": "b"}') == ('duplicate field "kind"',)


def test_a_custom_resource_has_the_fields_of_its_schema_and_of_every_object() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {}}}}}
    document = {
        "apiVersion": "v",
        "kind": "k",
        "metadata": {"name": "n", "x": 1},
        "spec": {"a": {"b": 1}, "c": 1},
    }
    assert field_validation.unknown_fields(document, custom_resource_schema(schema)) == (
        'unknown field "metadata.x"',
        'unknown field "spec.c"',
    )


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(documents)
def test_no_document_without_doubled_keys_has_faults_where_anything_will_do(document: Any) -> None:
    assert field_validation.strict_errors(json.dumps(document).encode(), document) == ()


@given(st.dictionaries(st.text(max_size=3), documents, min_size=1, max_size=3), st.data())
def test_a_doubled_key_is_always_found(document: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(document)))
    raw = json.dumps(document)[:-1] + f", {json.dumps(name)}: 1}}"
    assert field_validation.strict_errors(raw.encode(), json.loads(raw)) == (f'duplicate field "{name}"',)


def test_a_duplicate_field_is_found_beside_invalid_utf_8() -> None:
    raw = b'{"a": "\xff", "b": 1, "b": 2}'
    assert field_validation.strict_errors(raw, decode_json(raw)) == ('duplicate field "b"',)


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"\ud800", "\ufffd"),
        (r"\udc00\uD83D", "\ufffd\ufffd"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud800\ud800", "\\ud800\ufffd"),
    ],
)
def test_half_a_surrogate_pair_becomes_a_replacement_character(escaped: str, text: str) -> None:
    assert decode_json(f'{{"{escaped}": 1}}'.encode()) == {text: 1}


# -- what becomes of faults -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "meant"), [("", "Warn"), ("Warn", "Warn"), ("Strict", "Strict"), ("Ignore", "Ignore")]
)
def test_the_default_directive_is_warn(said: str, meant: str) -> None:
    assert field_validation.parse_directive(said) == meant


def test_a_strict_body_is_refused_with_all_its_faults() -> None:
    refused = field_validation.strict_body_error(
        "Deployment", "v1", ['unknown field "a"', 'duplicate field "b"']
    )
    assert to_status(refused) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Deployment in version "v1" cannot be handled as a Deployment: '
        'strict decoding error: unknown field "a", duplicate field "b"',
        "reason": "BadRequest",
        "code": 400,
    }


def test_a_strict_patch_is_refused_with_what_it_makes() -> None:
    refused = field_validation.invalid_patch(
        "map[spec:map[foo:1]]", field_validation.strict_decoding_error(['unknown field "spec.foo"'])
    )
    assert refused.code == 422
    assert refused.message == (
        ' "" is invalid: patch: Invalid value: "map[spec:map[foo:1]]": '
        'strict decoding error: unknown field "spec.foo"'
    )


def test_the_operations_of_a_json_patch_have_few_fields() -> None:
    raw = '[{"op": "add", "path": "/a", "value": {"x": 1, "x": 2}, "y": 1}]'
    assert field_validation.json_patch_strict_errors(raw.encode(), json.loads(raw)) == (
        'json patch duplicate field "[0].value.x"',
        'json patch unknown field "[0].y"',
    )


def test_keys_that_yaml_has_twice_are_one_fault_and_a_warning_each() -> None:
    _, doubled = decode_yaml(b"a: 1\na: 2\nb:\n  c: 1\n  c: 2\n")
    assert field_validation.yaml_strict_errors(doubled) == (
        'yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 5: key "c" already set in map',
    )
    warned = ('line 2: key "a" already set in map', 'line 5: key "c" already set in map')
    assert field_validation.warning_texts(
        (*field_validation.yaml_strict_errors(doubled), 'unknown field "b"')
    ) == (
        *warned,
        'unknown field "b"',
    )
    assert field_validation.warning_texts(field_validation.apply_strict_errors(doubled)) == warned
    assert field_validation.strict_apply_error(doubled[:1]).message == (
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 2: key "a" already set in map'
    )
    assert field_validation.yaml_strict_errors(()) == ()


# -- values that do not fit -------------------------------------------------------------------

QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec.replicas", "x", "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ("spec.replicas", 1.5, "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (
            "spec.replicas",
            99999999999,
            "number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        ("spec.replicas", True, "bool into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ("spec.replicas", {}, "object into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (
            "spec.template.spec.containers",
            {},
            "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            "spec.template.spec.containers.0.image",
            5,
            "number into Go struct field Container.spec.template.spec.containers.image of type string",
        ),
        (
            "spec.template.spec.containers.0",
            "x",
            "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
        ),
        (
            "metadata.labels",
            {"a": 1},
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "metadata.labels",
            [],
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            "spec.template.spec",
            [],
            "array into Go struct field PodTemplateSpec.spec.template.spec of type v1.PodSpec",
        ),
        (
            "spec.template.spec.terminationGracePeriodSeconds",
            "1",
            "string into Go struct field PodSpec.spec.template.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            "metadata.creationTimestamp",
            1,
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            "spec.strategy",
            {"rollingUpdate": {"maxSurge": True}},
            "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        ("spec.paused", "true", "string into Go struct field DeploymentSpec.spec.paused of type bool"),
        ("spec", "x", "string into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        ("metadata", "x", "string into Go struct field Deployment.metadata of type v1.ObjectMeta"),
        (
            "metadata.ownerReferences",
            [{"controller": "x"}],
            "string into Go struct field OwnerReference.metadata.ownerReferences.controller of type bool",
        ),
    ],
)
def test_a_value_that_does_not_fit_its_field_is_told_as_go_tells_it(path: str, value: Any, says: str) -> None:
    assert go_decode_error(DEPLOYMENT, having(path, value)) == f"json: cannot unmarshal {says}"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec.template.spec.containers.0.resources", {"limits": {"cpu": True}}, QUANTITY),
        (
            "metadata.creationTimestamp",
            "abc",
            'parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006"',
        ),
        (
            "metadata.creationTimestamp",
            "2020-01-01",
            'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"',
        ),
        ("metadata.creationTimestamp", "2020-01-01T00:00:00.5Z", ""),
        ("spec.replicas", None, ""),
        ("spec.foo", "nobody knows it", ""),
    ],
)
def test_quantities_and_times_have_words_of_their_own(path: str, value: Any, says: str) -> None:
    assert go_decode_error(DEPLOYMENT, having(path, value)) == says


def test_the_data_of_a_secret_is_base64() -> None:
    assert go_decode_error(SECRET, {"data": {"a": "YQ=="}}) == ""
    assert go_decode_error(SECRET, {"data": {"a": "???"}}) == "illegal base64 data at input byte 0"
    says = "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"
    assert go_decode_error(SECRET, {"data": {"a": 1}}) == says


def test_a_body_that_is_no_object_has_no_fields() -> None:
    assert go_decode_error(SERVICE, [1]) == "json: cannot unmarshal array into Go value of type v1.Service"


# -- JSON -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a":', "unexpected end of JSON input"),
        ('{"a": "b', "unexpected end of JSON input"),
        ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a": x}', "invalid character 'x' looking for beginning of value"),
        ('{"a": NaN}', "invalid character 'N' looking for beginning of value"),
        ('{"a": -Infinity}', "invalid character 'I' in numeric literal"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1} x', "invalid character 'x' after top-level value"),
    ],
)
def test_what_is_no_json_is_told_as_go_tells_it(raw: str, says: str) -> None:
    with pytest.raises(MalformedDocument) as refused:
        decode_json(raw.encode())
    assert str(refused.value) == says


@pytest.mark.parametrize(
    "number", ["9" * 310, "-" + "9" * 4300, "9" * 5000, "1e400", "-1e309", "1" * 400 + ".5"]
)
def test_a_number_beyond_float64_is_refused_as_go_refuses_it(number: str) -> None:
    with pytest.raises(
        NumberOutOfRange, match=r"^json: cannot unmarshal number .* into Go value of type float64$"
    ):
        decode_json(f'{{"a": [{number}]}}'.encode())
    with pytest.raises(MalformedDocument, match="unexpected end of JSON input"):
        decode_json(f'{{"a": [{number}]'.encode())


@pytest.mark.parametrize("text", ["9" * 308, '"' + "9" * 5000 + '"', "0." + "1" * 5000, "1e308"])
def test_other_long_numbers_and_texts_are_decoded(text: str) -> None:
    assert decode_json(f'{{"é": {text}}}'.encode()) == {"é": json.loads(text)}


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 5_000, 200_000])
def test_nothing_is_read_that_is_nested_too_far(levels: int) -> None:
    with pytest.raises(MalformedDocument, match="exceeded max depth"):
        decode_json(b'{"a":' * levels + b"1" + b"}" * levels)
    with pytest.raises(MalformedDocument, match="exceeded max depth"):
        decode_yaml(b"[" * levels + b"]" * levels)


def test_many_brackets_are_not_a_deep_nesting() -> None:
    raw = b"[" + b",".join([b"{}"] * 1000) + b"]"
    assert decode_json(raw) == [{}] * 1000
    assert decode_json(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH)


# -- YAML -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("off", False),
        ("y", True),
        ("~", None),
        ("", None),
        ("12", 12),
        ("+12", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 15),
        ("-0b11", -3),
        ("1_000", 1000),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709551616.0),
        pytest.param("9" * 5000, "9" * 5000, id="5000 digits"),
        ("1e400", "1e400"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("1.2.3", "1.2.3"),
        ("09", 9.0),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("!!float 12", 12.0),
        ("text", "text"),
        ("=", "="),
    ],
)
def test_plain_scalars_mean_what_upstreams_library_makes_of_them(text: str, value: Any) -> None:
    document, doubled = decode_yaml(f"key: {text}\n".encode())
    assert document == {"key": value}
    assert type(document["key"]) is type(value)
    assert doubled == ()


def test_keys_are_texts_whatever_they_were() -> None:
    assert decode_yaml(b"1: a\ntrue: b\n1.5: c\non: d\n")[0] == {"1": "a", "true": "d", "1.5": "c"}


def test_maps_are_merged_in_the_order_of_the_document() -> None:
    text = b"base: &b {x: 1, w: 2}\nmade: {<<: *b, w: 3}\nboth: {<<: [{z: 1}, {z: 2}]}\n"
    document, doubled = decode_yaml(text)
    assert document["made"] == {"x": 1, "w": 3}
    assert document["both"] == {"z": 1}
    assert doubled == ('line 2: key "w" already set in map', 'line 3: key "z" already set in map')


def test_json_that_has_keys_twice_is_told_by_its_lines() -> None:
    text = b'{"a": {"b": 1},\n "a": {"c": "x: y"}}'
    assert decode_yaml(text) == ({"a": {"c": "x: y"}}, ('line 2: key "a" already set in map',))
    assert decode_yaml(b"{a: 1, b: yes}") == ({"a": 1, "b": True}, ())


def test_of_several_documents_the_first_counts() -> None:
    assert decode_yaml(b"a: 1\n---\nb: 2\n")[0] == {"a": 1}
    assert decode_yaml(b"") == (None, ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &a [*a]\n", "yaml: anchor 'a' value contains itself"),
        ("a: *b\n", "yaml: unknown anchor 'b' referenced"),
        ("a: {<<: 1}\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("? [1]\n: 2\n", "yaml: invalid map key"),
        ("a: .nan\n", "json: unsupported value: NaN"),
        ("a: [\n", "yaml: line 1: did not find expected node content"),
    ],
)
def test_what_is_no_yaml_is_told_as_upstreams_library_tells_it(text: str, says: str) -> None:
    with pytest.raises(MalformedDocument) as refused:
        decode_yaml(text.encode())
    assert str(refused.value) == says


def test_a_few_lines_of_aliases_do_not_become_a_billion_values() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(MalformedDocument, match="excessive aliasing"):
        decode_yaml("\n".join(lines).encode())


def test_a_chain_of_aliases_is_nesting() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 5_000))]
    with pytest.raises(MalformedDocument, match="exceeded max depth"):
        decode_yaml("\n".join(lines).encode())


def test_an_anchor_may_be_defined_again() -> None:
    assert decode_yaml(b"a: &x 1\nb: *x\nc: &x 2\nd: *x\n")[0] == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_document_has_a_limited_number_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_yaml, "MAX_NODES", 100)
    assert len(decode_yaml(b"- x\n" * 99)[0]) == 99
    for text in (b"- x\n" * 100, b"a: &a [1, 2, 3]\n" + b"".join(b"b%d: *a\n" % n for n in range(20))):
        with pytest.raises(MalformedDocument, match=r"^yaml: exceeded max nodes of 100$"):
            decode_yaml(text)


def test_yaml_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parser = "CSafeLoader" if yaml.__with_libyaml__ else "SafeLoader"
    base: Any = getattr(yaml, parser)

    class Counting(base):  # type: ignore[misc]
        def __init__(self, stream: bytes) -> None:
            parsed.append(stream)
            super().__init__(stream)

    monkeypatch.setattr(yaml, parser, Counting)
    assert decode_yaml(b"a: [1, {b: 2}]\n")[0] == {"a": [1, {"b": 2}]}
    assert parsed == [b"a: [1, {b: 2}]\n"]


async def test_large_yaml_is_decoded_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    compose = go_yaml._compose
    composed_here = []

    def recorded(loader: Any) -> Any:
        composed_here.append(loader)
        return compose(loader)

    monkeypatch.setattr(go_yaml, "_compose", recorded)
    for text in (b"a: 1\n" + b"# large\n" * 5_000, b"a: &x 1\nb: *x\n"):
        body = await predecode_yaml(text)
        assert body == text
        assert decode_yaml(body)[0]["a"] == 1
    refused = await predecode_yaml(b"a: *x\nb: &x 1\n")
    with pytest.raises(MalformedDocument, match="unknown anchor 'x' referenced"):
        decode_yaml(refused)
    assert not composed_here
    small = b"a: 1\n"
    assert await predecode_yaml(small) is small


async def test_more_yaml_than_may_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_yaml, "MAX_WAITING_YAML", 50_000)
    text = b"a: 1\n" + b"# large\n" * 5_000
    outcomes = await asyncio.gather(*(predecode_yaml(text) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [PredecodedYaml, TooMuchYaml, TooMuchYaml]


words = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=4)
readable = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)


@given(readable)
def test_json_read_as_yaml_is_the_same_document(document: Any) -> None:
    raw = json.dumps(document)
    assert decode_yaml(raw.encode())[0] == document
