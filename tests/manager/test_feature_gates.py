"""Feature gates: which are on, and which cannot be set so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.intent.gates import CURRENT, FEATURES, GATES, gates_at
from steersman.manager.flags import UsageError
from steersman.manager.options import read


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["--feature-gates=HPAScaleToZer=true"],
            "unrecognized feature gate: HPAScaleToZer; did you mean HPAScaleToZero?",
        ),
        (["--feature-gates=HPAScaleToZero"], "missing bool value for HPAScaleToZero"),
        (
            ["--feature-gates=HPAScaleToZero=maybe"],
            'invalid value of HPAScaleToZero=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (
            ["--feature-gates=APIServerTracing=false"],
            "cannot set feature gate APIServerTracing to false, feature is locked to true",
        ),
        (
            ["--feature-gates=GenericWorkload=true", "--emulated-version=1.33"],
            "cannot set feature gate GenericWorkload to true, feature is PreAlpha at emulated version 1.33, "
            "min compatibility version 1.33",
        ),
        (
            ["--feature-gates=GangScheduling=true"],
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (["--feature-gates=wardle:A=true"], "component not registered: wardle"),
        (
            ["--feature-gates=WatchList=true,kube:AtomicFIFO=true"],
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
        (["--emulated-version=1.30"], "emulation version 1.30 is not between [1.33, 1.36]"),
        (["--emulated-version=1.37"], "emulation version 1.37 is not between [1.33, 1.36]"),
        (["--emulated-version=x"], 'could not parse "x" as version'),
        (["--emulated-version=kube=1.35.1"], "patch version not allowed, got: kube=1.35.1"),
        (["--emulated-version=wardle=1.35"], "component not registered: wardle"),
        (["--emulated-version=1.35,1.34"], "duplicate version flag, kube=1.35 and kube=1.34"),
        (
            ["--min-compatibility-version=1.30"],
            "minCompatibilityVersion version 1.30 is not between [1.33, 1.36]",
        ),
        (
            ["--emulated-version=1.34", "--min-compatibility-version=1.35"],
            "minCompatibilityVersion version 1.35 is not between [1.33, 1.34]",
        ),
    ],
)
def test_what_cannot_be_said_of_features_is_refused_in_upstreams_words(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(argv)
    assert str(caught.value) == message


def test_a_component_may_be_named() -> None:
    assert read(["--feature-gates=kube:HPAScaleToZero=true"]).settings.enabled("HPAScaleToZero")


def test_gates_add_up_over_several_flags_and_the_last_word_counts() -> None:
    settings = read(
        ["--feature-gates=HPAScaleToZero=true", "--feature-gates=WatchList=false,HPAScaleToZero=false"]
    ).settings
    assert settings.gates == {"WatchList": False}


def test_all_of_a_stage_is_that_of_the_emulated_version() -> None:
    # It was alpha then, and is beta now.
    feature = next(
        feature
        for feature in FEATURES
        if (old := feature.at((1, 34))) and old.stage == "ALPHA" and GATES[feature.name].stage == "BETA"
    )
    argv = ["--feature-gates=AllAlpha=true"]
    assert read([*argv, "--emulated-version=1.34"]).features.enabled()[feature.name]
    assert read(argv).features.enabled()[feature.name] == GATES[feature.name].default


def test_an_older_version_has_fewer_features() -> None:
    features = read(["--emulated-version=1.35"]).features
    assert features.emulated == (1, 35)
    assert "StaleControllerConsistencyJob" not in features.enabled()
    assert not read(["--emulated-version=1.35"]).settings.enabled("StaleControllerConsistencyJob")
    assert read([]).settings.enabled("StaleControllerConsistencyJob")


@pytest.mark.parametrize(
    ("word", "stage"),
    [("APIServerTracing=true", "GA"), ("AllowOverwriteTerminationGracePeriodSeconds=false", "deprecated")],
)
def test_setting_a_gate_that_will_go_is_warned_of(word: str, stage: str) -> None:
    (said,) = read([f"--feature-gates={word}"]).features.warnings()
    assert said.startswith(f"Warning: setting {stage} feature gate. It will be removed in a future release.")
    assert word.partition("=")[0] in said


def test_alpha_features_of_an_older_version_are_warned_of() -> None:
    argv = ["--feature-gates=HPAScaleToZero=true"]
    assert list(read(argv).features.warnings()) == []
    (said,) = read([*argv, "--emulated-version=1.35"]).features.warnings()
    assert said.endswith("this is unsupported: features=[HPAScaleToZero]")


def test_the_table_for_the_metric_has_every_gate_with_its_stage() -> None:
    table = {
        name: (stage, on)
        for name, stage, on in read(["--feature-gates=HPAScaleToZero=true"]).features.table()
    }
    assert len(table) == len(GATES) == 242
    assert table["HPAScaleToZero"] == ("ALPHA", True)
    assert table["WatchList"] == ("BETA", True)
    assert table["APIServerTracing"] == ("", True)
    assert table["AllBeta"] == ("BETA", False)


@pytest.mark.parametrize(("minor", "count"), [(33, 172), (34, 191), (35, 212), (36, 242)])
def test_each_version_has_as_many_gates_as_upstream(minor: int, count: int) -> None:
    assert len(gates_at((1, minor))) == count


def test_what_a_gate_needs_is_a_gate() -> None:
    assert {name for feature in FEATURES for name in feature.needs} <= set(GATES)


SETTABLE = [name for name, gate in GATES.items() if not gate.locked and name not in ("AllAlpha", "AllBeta")]


def satisfied(wanted: dict[str, bool]) -> bool:
    """Whether every gate that is on has those it needs."""
    on = {name: wanted.get(name, gate.default) for name, gate in GATES.items()}
    return all(on[name] for feature in FEATURES if on.get(feature.name) for name in feature.needs)


@given(st.dictionaries(st.sampled_from(SETTABLE), st.booleans(), max_size=6).filter(satisfied))
def test_what_is_said_of_a_gate_is_so(wanted: dict[str, bool]) -> None:
    words = ",".join(f"{name}={str(value).lower()}" for name, value in wanted.items())
    options = read([f"--feature-gates={words}"])
    on = options.features.enabled()
    for name in SETTABLE:
        expected = wanted.get(name, GATES[name].default)
        assert options.settings.enabled(name) is on[name] is expected


def test_this_version_is_the_newest_there_is() -> None:
    assert max(since for feature in FEATURES for since, _ in feature.history) == CURRENT
