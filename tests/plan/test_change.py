"""Changes and assumptions, as the words of a command line and as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.plan.assumptions import Assumptions, Load, parse, read_loads
from steersman.plan.change import (
    Apply,
    ChangeError,
    Delete,
    Drain,
    Fail,
    Scale,
    SetImage,
    in_order,
    parse_documents,
    read_steps,
)

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


def test_the_words_of_a_command_line_are_steps() -> None:
    assert read_steps(
        deletes=["deploy/web"],
        scales=["sts/db=3"],
        images=["deploy/web=web:v2", "deploy/api=main=registry:5000/api@sha256:1"],
        drains=["node-1", "node/node-2"],
        fails=["node-3"],
    ) == (
        Delete("deploy", "web"),
        Scale("sts", "db", 3),
        SetImage("deploy", "web", "web:v2"),
        SetImage("deploy", "api", "registry:5000/api@sha256:1", "main"),
        Drain("node-1"),
        Drain("node-2"),
        Fail("node-3"),
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "there is no change"),
        ({"deletes": ["web"]}, "no KIND/NAME"),
        ({"deletes": ["deploy/"]}, "no KIND/NAME"),
        ({"scales": ["deploy/web"]}, "no KIND/NAME=REPLICAS"),
        ({"scales": ["deploy/web=-1"]}, "no KIND/NAME=REPLICAS"),
        ({"images": ["deploy/web"]}, "no KIND/NAME="),
        ({"images": ["deploy/web=main="]}, "no KIND/NAME="),
        ({"drains": ["a/b/c"]}, "no name of a node"),
        ({"files": ["/does/not/exist.yaml"]}, "No such file"),
    ],
)
def test_words_that_are_no_step_are_one_clear_error(flags: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ChangeError, match=message) as raised:
        read_steps(**flags)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no manifest"),
        ("---\n", "no manifest"),
        ("just words", "a manifest is a map"),
        ("a: [", "no YAML"),
        ("kind: Pod\nmetadata: {name: a}", "no apiVersion"),
        ("apiVersion: v1\nkind: Pod", "no metadata.name"),
        (POD.replace("name: a", "generateName: a-"), "from a-: cannot use generate name with apply$"),
        ("apiVersion: v1\nkind: Pod\nmetadata: 7", "no metadata.name"),
        ("!!python/object/apply:os.system ['true']", "a manifest is a map"),
        ("a: &a [*a]", "no YAML that Kubernetes reads"),
    ],
)
def test_text_that_is_no_manifest_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(ChangeError, match=message) as raised:
        parse_documents(text, "a.yaml")
    assert str(raised.value).startswith("a.yaml: ")
    assert "\n" not in str(raised.value)


def test_manifests_come_from_files_directories_lists_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.yaml").write_text(POD + "---\n" + POD.replace("a}", "b}"))
    (tmp_path / "deep" / "two.json").write_text(
        '{{"apiVersion":"v1","kind":"List","items":[{}]}}'.format(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}'
        )
    )
    (tmp_path / "notes.txt").write_text("not a manifest")
    steps = read_steps(files=[str(tmp_path), "-"], stdin=lambda: POD.replace("a}", "d}"))
    assert [step.document["metadata"]["name"] for step in steps if isinstance(step, Apply)] == [
        "c",
        "a",
        "b",
        "d",
    ]
    assert [step.origin for step in steps if isinstance(step, Apply)][-1] == "standard input"


def test_definitions_and_namespaces_come_first() -> None:
    kinds = ("Pod", "Namespace", "CustomResourceDefinition", "Widget")
    steps = [Apply({"kind": kind}) for kind in kinds]
    ordered = [step.document["kind"] for step in sorted(steps, key=in_order)]
    assert ordered == ["CustomResourceDefinition", "Namespace", "Pod", "Widget"]


def test_assumptions_are_read_and_described(tmp_path: Path) -> None:
    file = tmp_path / "load.yaml"
    file.write_text('shop/web: {cpu: 250m, memory: 64Mi}\napi: {cpu: "6", per: workload}\n')
    found = parse(["ready=20s", "start=1m30s", "image=web:v9:never", f"metrics={file}"])
    assert found == Assumptions(
        start=90.0,
        ready=20.0,
        missing_images=("web:v9",),
        loads=(Load("shop", "web", 250, 64 * 1024 * 1024), Load("default", "api", 6000, None, True)),
    )
    assert any("web:v9 cannot be pulled" in line for line in found.described())
    assert not found.settings.pulls("web:v9")
    assert found.settings.pulls("badger:v1")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("redy=20s", "did you mean 'ready'"),
        ("ready", "no assumption"),
        ("ready=soon", "no duration"),
        ("image=web:v9", "NAME:TAG:never"),
        ("metrics=/does/not/exist", "No such file"),
    ],
)
def test_words_that_are_no_assumption_are_one_clear_error(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse([word])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (["a"], "a map of NAMESPACE/WORKLOAD"),
        ({"a/b": 7}, "no NAMESPACE/WORKLOAD"),
        ({"a/b": {"cpus": 1}}, "did you mean 'cpu'"),
        ({"a/b": {"cpu": "much"}}, "a/b:"),
        ({"a/b": {"cpu": 1, "per": "node"}}, "per must be pod or workload"),
    ],
)
def test_loads_that_cannot_be_read_are_one_clear_error(content: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_loads(content)


@pytest.mark.parametrize("count", ["2147483648", "99999999999", "9" * 5000])
def test_replicas_that_are_no_int32_are_refused_before_pods_are_made_of_them(count: str) -> None:
    with pytest.raises(ChangeError, match="is no KIND/NAME=REPLICAS"):
        read_steps(scales=[f"deploy/web={count}"])
    assert read_steps(scales=["deploy/web=2147483647"]) == (Scale("deploy", "web", 2147483647),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("apiVersion: v1\nkind: List\nitems: 5\n", "not int"),
        ("apiVersion: v1\nkind: [a]\nmetadata: {name: g}\n", "no apiVersion or no kind"),
        ("a: !!int hunter2\n", "f.yaml: no YAML that Kubernetes reads"),
        ("a: *hunter2\n", "f.yaml: no YAML that Kubernetes reads"),
        ("a: b: hunter2\n", "f.yaml: no YAML: mapping values are not allowed .* in line 1, column 5$"),
    ],
)
def test_what_is_no_manifest_is_one_error_that_repeats_nothing_of_it(text: str, problem: str) -> None:
    with pytest.raises(ChangeError, match=problem) as caught:
        parse_documents(text, "f.yaml")
    assert "hunter2" not in str(caught.value)


def test_manifests_are_read_by_the_rules_of_kubectl() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        "data: {date: 2024-13-45, day: 2024-01-02, port: 22:22, answer: yes, y: n, 1: one}\n"
    )
    (document,) = parse_documents(text, "f.yaml")
    assert document["data"] == {
        "date": "2024-13-45",
        "day": "2024-01-02",
        "port": "22:22",
        "answer": True,
        "true": False,
        "1": "one",
    }


def test_bytes_of_standard_input_that_are_no_text_are_one_clear_error() -> None:
    with pytest.raises(ChangeError, match=r"f\.yaml: no YAML"):
        parse_documents(b"a: \xff".decode(errors="surrogateescape"), "f.yaml")
