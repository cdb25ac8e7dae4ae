"""Build information metrics, and which metrics are exposed."""

from __future__ import annotations

import platform
from pathlib import Path

import yaml

from steersman.api.prometheus import ExpositionOptions, parse_allow_list
from steersman.client.http import HttpApi
from steersman.manager.feature_gates import Features
from steersman.manager.flags import UsageError
from steersman.manager.options import MetricsOptions
from steersman.manager.version import KUBERNETES, PLATFORM
from steersman.runtime import process_metrics
from steersman.runtime.metrics import Metrics


def describe(metrics: Metrics, features: Features, root: HttpApi) -> None:
    """Set the metrics that describe this process: version, feature gates, process and client statistics."""
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    build = {
        "major": major,
        "minor": minor,
        "git_version": KUBERNETES,
        # differs: this is no build of Kubernetes, so no commit of it and no Go.
        "git_commit": "",
        "git_tree_state": "",
        "build_date": "",
        "go_version": "",
        "compiler": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": PLATFORM,
    }
    metrics.gauge("kubernetes_build_info", "Build information of this program", tuple(build), "BETA").of(
        *build.values()
    ).set(1)
    emulated = ".".join(map(str, features.emulated))
    versions = {
        "component": "kube",
        "binary": KUBERNETES.removeprefix("v"),
        "emulation": emulated,
        "min_compat": ".".join(map(str, features.oldest)),
    }
    metrics.gauge("version_info", "Versions this program is compatible with", tuple(versions)).of(
        *versions.values()
    ).set(1)
    for name, stage, on in features.table():
        metrics.features.of(name, stage).set(on)
    process_metrics.follow(metrics)
    metrics.rest.follow(root)


def exposed(options: MetricsOptions) -> ExpositionOptions:
    """Which metrics and label values the flags expose. Raises `UsageError` where the manifest cannot be read."""
    allowed = dict(options.allow_metric_labels)
    path = options.allow_metric_labels_manifest
    if path and not allowed:
        allowed = _manifest(path)
    try:
        lists = parse_allow_list(allowed)
    except ValueError as error:
        raise UsageError(f"--allow-metric-labels-manifest={path}: {error}") from None
    return ExpositionOptions(
        frozenset(options.disabled_metrics), lists, bool(options.show_hidden_metrics_for_version)
    )


def _manifest(path: str) -> dict[str, str]:
    try:
        document = yaml.safe_load(Path(path).read_text())
    except UnicodeDecodeError:
        raise UsageError(f"--allow-metric-labels-manifest={path}: not text") from None
    except OSError as error:
        raise UsageError(f"--allow-metric-labels-manifest={path}: {error.strerror}") from None
    except yaml.YAMLError:
        raise UsageError(f"--allow-metric-labels-manifest={path}: not YAML") from None
    if not isinstance(document, dict) or not all(
        isinstance(text, str) for pair in document.items() for text in pair
    ):
        raise UsageError(f"--allow-metric-labels-manifest={path}: not a map of strings")
    return document
