"""The table of flags is whole, and agrees with what the controllers declare."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.manager.flag_table import FLAGS, declared, described
from steersman.manager.flag_types import BOOL, DURATION, INT32, STRING, NamedPair
from steersman.manager.flags import Option, parse, usage, warnings
from steersman.manager.options import options

FLOATS = ("float", "float32")
SAMPLES: dict[str, tuple[str, Any]] = {
    "bool": ("true", True),
    "string": ("x", "x"),
    "ip": ("::1", "::1"),
    "int": ("7", 7),
    "int32": ("7", 7),
    "float": ("0.5", 0.5),
    "float32": ("0.5", 0.5),
    "duration": ("1h30m", 5400.0),
    "strings": ("a,b", ("a", "b")),
    "int32Slice": ("23,24", (23, 24)),
    "namedCertKey": (
        "c.crt,c.key:*.example.com,example.com",
        (NamedPair("c.crt", "c.key", ("*.example.com", "example.com")),),
    ),
    "stringToString": ("metric,label=a,b", (("metric,label", "a,b"),)),
    "colonSeparatedMultimapStringString": ("B=false,kube:A=true", (("", "B=false"), ("kube", "A=true"))),
    "quantity": ("2Ki", 2048),
    "Level": ("7", 7),
    "pattern=N,...": ("leader*=4,host=2", (("leader*", 4), ("host", 2))),
    "version": ("raw", "raw"),
}


def test_there_are_148_flags_and_two_that_are_deprecated() -> None:
    assert len(FLAGS) == len({flag.name for flag in FLAGS}) == 150
    assert [flag.name for flag in FLAGS if flag.deprecated] == ["allow-untagged-cloud", "node-sync-period"]


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_is_read_and_written(flag: Option) -> None:
    text, value = SAMPLES[flag.type.name]
    for argv in ([f"--{flag.name}={text}"], [f"--{flag.name}", text])[: 1 if flag.type.bare else 2]:
        read = parse(FLAGS, argv)[flag.name]
        if flag.type.name == "quantity":
            assert read.value() == value
        else:
            assert read == value
    shown = flag.type.write(read)
    assert flag.type.read(shown.strip("[]")) == read


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_says_what_it_is_for(flag: Option) -> None:
    assert flag.help.endswith(".")
    assert "\n" not in flag.help


@pytest.mark.parametrize("name", list(declared()))
def test_what_a_controller_declares_is_in_the_table(name: str) -> None:
    flag = declared()[name]
    row = next(row for row in FLAGS if row.name == name)
    assert row.default == flag.default
    kinds: dict[type, tuple[str, ...]] = {
        bool: ("bool",),
        int: ("int32",),
        float: ("duration", *FLOATS),
        str: ("string",),
    }
    assert row.type.name in kinds[type(flag.default)]


def test_the_defaults_are_accepted() -> None:
    asked = options(parse(FLAGS, []))
    assert asked.serving.secure_port == 10257
    assert asked.serving.bind_address == "0.0.0.0"
    assert asked.authorization.always_allow_paths == ("/healthz", "/readyz", "/livez")
    assert asked.authentication.requestheader_username_headers == ("x-remote-user",)
    assert asked.authentication.token_webhook_cache_ttl == 10.0
    assert (asked.shutdown_timeout, asked.start_interval) == (10.0, 0.0)
    assert asked.debugging.profiling
    assert not asked.migration.enabled
    assert asked.logging.format == "text"


def test_a_deprecated_flag_is_accepted_with_a_warning_and_not_in_the_help() -> None:
    argv = ["--node-sync-period=10s"]
    assert parse(FLAGS, argv)["node-sync-period"] == 10.0
    assert list(warnings(FLAGS, ["node-sync-period"])) == [
        "Flag --node-sync-period has been deprecated, This flag is currently no-op and will be deleted."
    ]
    assert not list(warnings(FLAGS, ["v"]))
    assert "node-sync-period" not in usage(FLAGS)


def test_the_help_has_upstreams_sections_in_its_order() -> None:
    sections = [line for line in usage(FLAGS).splitlines() if line.endswith(" flags:")]
    assert sections[:8] == [
        "Debugging flags:",
        "Leader-migration flags:",
        "Generic flags:",
        "Service-lb-controller flags:",
        "Secure serving flags:",
        "Authentication flags:",
        "Authorization flags:",
        "Persistentvolume-attach-detach-controller flags:",
    ]
    assert sections[-4:] == ["Metrics flags:", "Logs flags:", "Misc flags:", "Global flags:"]
    assert len(sections) == len(set(sections)) == 38


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cluster-name", '(default "kubernetes")'),
        ("secure-port", "(default 10257)"),
        ("controllers", "(default [*])"),
        ("leader-elect", "(default true)"),
        ("node-eviction-rate", "(default 0.1)"),
        ("min-resync-period", "(default 12h0m0s)"),
    ],
)
def test_the_help_shows_defaults_as_pflag_does(name: str, shown: str) -> None:
    text = usage(FLAGS, width=1000)
    assert text.partition(f"--{name}")[2].splitlines()[1].endswith(shown)


def test_the_help_names_all_controllers_and_the_gates_that_are_not_settled() -> None:
    text = usage(described(), width=100_000)
    assert "daemonset-controller, deployment-controller" in text
    assert "HPAScaleToZero=true|false (ALPHA - default=false)" in text
    assert "APIServerTracing" not in text


def test_the_types_of_values_are_shared() -> None:
    kinds = {flag.type.name: flag.type for flag in FLAGS}
    assert (kinds["bool"], kinds["string"], kinds["int32"], kinds["duration"]) == (
        BOOL,
        STRING,
        INT32,
        DURATION,
    )
