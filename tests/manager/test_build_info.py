"""What a whole manager shows, against the table of what kube-controller-manager 1.36 shows."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from steersman.api.prometheus import ExpositionOptions, exposition
from steersman.client.config import ClientConfig
from steersman.client.http import HttpApi
from steersman.controllers import CONTROLLERS
from steersman.manager import build_info
from steersman.manager.flags import UsageError
from steersman.manager.options import MetricsOptions, read
from steersman.manager.serving.metrics import ServingMetrics
from steersman.manager.version import KUBERNETES
from steersman.runtime.metrics import Metrics

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
DASHBOARD = DOCS / "dashboards" / "steersman.json"
ABOUT = (
    "cardinality_enforcement_unexpected_categorizations_total",
    "disabled_metrics_total",
    "hidden_metrics_total",
    "registered_metrics_total",
)
"""Metrics about metrics: made when somebody looks."""


@cache
def table() -> dict[str, dict[str, str]]:
    with (HERE / "metrics.tsv").open() as file:
        return {row["metric"]: row for row in csv.DictReader(file, delimiter="\t")}


@pytest.fixture
async def metrics() -> Metrics:
    """Those of a manager that serves and runs every controller, without a cloud."""
    made = Metrics()
    async with HttpApi(ClientConfig("https://127.0.0.1:1")) as root:
        build_info.describe(made, read(["--kubeconfig=x"]).features, root)
    ServingMetrics(made)
    for controller in CONTROLLERS:
        if controller.cloud is None:
            made.declare(controller.metrics)
    return made


async def test_every_metric_is_named_typed_and_labelled_as_upstreams(metrics: Metrics) -> None:
    ours = {
        family.name: (family.type, ",".join(sorted(family.labels)), family.stability)
        for family in metrics.families
        if not family.name.startswith("steersman_")
    }
    theirs = {
        name: (row["type"], row["labels"], row["stability"])
        for name, row in table().items()
        if not row["missing"] and name not in ABOUT
    }
    assert ours == theirs


def test_the_metrics_of_cloud_controllers_are_those_of_cloud_controller_manager() -> None:
    found = {
        metric.name: metric.type
        for controller in CONTROLLERS
        if controller.cloud is not None
        for metric in controller.metrics
    }
    assert found == {
        "route_controller_route_sync_total": "counter",
        "service_controller_loadbalancer_sync_total": "counter",
        "service_controller_nodesync_error_total": "counter",
        "service_controller_nodesync_latency_seconds": "histogram",
        "service_controller_update_loadbalancer_host_latency_seconds": "histogram",
    }


async def test_metrics_about_metrics_are_upstreams_too(metrics: Metrics) -> None:
    text = exposition(metrics).decode()
    for name in ABOUT:
        assert f"# HELP {name} [{table()[name]['stability']}]" in text
        assert f"# TYPE {name} {table()[name]['type']}" in text


def test_what_is_not_there_is_told_with_its_reason() -> None:
    told = (DOCS / "compatibility.md").read_text().split("## Metrics\n")[1].split("\n## ")[0]
    whole, begun = (set(re.findall(pattern, told)) for pattern in (r"`([a-z_0-9]+)`", r"`([a-z_0-9]+_)\*`"))
    for name, row in table().items():
        if row["missing"]:
            assert name in whole or any(name.startswith(prefix) for prefix in begun), name


async def test_the_program_says_what_it_is(metrics: Metrics) -> None:
    text = exposition(metrics).decode()
    assert re.search(rf'^kubernetes_build_info{{.*git_version="{re.escape(KUBERNETES)}".*}} 1$', text, re.M)
    assert 'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 1' in text
    assert 'kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0' in text
    assert 'version_info{binary="1.36.4",component="kube",emulation="1.36",min_compat="1.35"} 1' in text
    assert "\nrest_client_exec_plugin_ttl_seconds +Inf\n" in text


# -- which of them are shown ------------------------------------------------------------------


def metering(**said: Any) -> MetricsOptions:
    return MetricsOptions(
        show_hidden_metrics_for_version=said.get("hidden", ""),
        disabled_metrics=said.get("disabled", ()),
        allow_metric_labels=said.get("labels", ()),
        allow_metric_labels_manifest=said.get("manifest", ""),
    )


def test_flags_say_what_is_shown(tmp_path: Path) -> None:
    assert build_info.exposed(metering()) == ExpositionOptions()
    assert build_info.exposed(metering(disabled=("a",), hidden="1.35")) == ExpositionOptions(
        frozenset({"a"}), {}, True
    )
    manifest = tmp_path / "allow"
    manifest.write_text('"a,b": "c,d"\n')
    allowed = {"a": {"b": frozenset({"c", "d"})}}
    assert build_info.exposed(metering(manifest=str(manifest))).allowed_values == allowed
    assert build_info.exposed(metering(labels=(("a,b", "c,d"),))).allowed_values == allowed


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("{", "not YAML"),
        ("[]", "not a map of strings"),
        ("a,b: 3", "not a map of strings"),
        ("a: b", "metricName,labelName"),
        (b"\xff", "not text"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_one_line(
    content: str | bytes | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "manifest"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError) as caught:
        build_info.exposed(metering(manifest=str(path)))
    assert words in str(caught.value)
    assert f"--allow-metric-labels-manifest={path}" in str(caught.value)


# -- the dashboard ----------------------------------------------------------------------------


def queries(board: Any) -> Iterator[str]:
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


async def test_the_dashboard_asks_only_for_what_is_shown(metrics: Metrics) -> None:
    known = {family.name for family in metrics.families} | set(ABOUT)
    known |= {
        f"{family.name}_{part}"
        for family in metrics.families
        if family.type == "histogram"
        for part in ("bucket", "sum", "count")
    }
    labels = {label for family in metrics.families for label in family.labels}
    functions = {"rate", "sum", "max", "by", "histogram_quantile", "label_values", "topk", "le", "job", "on"}
    asked = list(queries(json.loads(DASHBOARD.read_text())))
    assert len(asked) > 10
    for query in asked:
        bare = re.sub(r'"[^"]*"|\$__\w+|\$\w+|\[[^]]*\]', "", query)
        words = re.findall(r"[a-z_][a-z0-9_]*", bare)
        assert any(word in known for word in words), query
        assert not [word for word in words if word not in known | labels | functions], query
