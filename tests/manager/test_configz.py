"""``/configz`` and ``/flagz`` say what the flags say, in upstream's form."""

from __future__ import annotations

import json
from pathlib import Path

from steersman.manager import migration
from steersman.manager.configz import GROUP, configz, flagz
from steersman.manager.options import read
from steersman.manager.serving import zpages

EXPECTED = json.loads((Path(__file__).parent / "configz.json").read_text())
"""What kube-controller-manager 1.36 answers when it is given no flags."""


def test_keys_and_defaults_are_upstreams() -> None:
    assert json.dumps(configz(read([])), indent=1) == json.dumps(EXPECTED, indent=1)


def test_what_was_set_is_shown() -> None:
    shown = configz(
        read(
            [
                "--kube-api-qps=33.5",
                "--controllers=*,-nodeipam,tokencleaner",
                "--service-cluster-ip-range=10.0.0.0/8,fd00::/48",
                "--node-monitor-grace-period=1m30s",
                "--cluster-signing-duration=1h",
                "--feature-gates=AllAlpha=false",
            ]
        )
    )[GROUP]
    assert shown["Generic"]["ClientConnection"]["qps"] == 33.5
    assert shown["Generic"]["Controllers"] == ["*", "-node-ipam-controller", "token-cleaner-controller"]
    assert shown["NodeIPAMController"]["ServiceCIDR"] == "10.0.0.0/8"
    assert shown["NodeIPAMController"]["SecondaryServiceCIDR"] == "fd00::/48"
    assert shown["NodeLifecycleController"]["NodeMonitorGracePeriod"] == "1m30s"
    assert shown["CSRSigningController"]["ClusterSigningDuration"] == "1h0m0s"


def test_leader_migration_is_shown_with_its_table() -> None:
    generic = configz(read(["--enable-leader-migration"]), migration.DEFAULT)[GROUP]["Generic"]
    assert generic["LeaderMigrationEnabled"]
    assert generic["LeaderMigration"]["leaderName"] == "cloud-provider-extraction-migration"
    assert generic["LeaderMigration"]["resourceLock"] == "leases"
    assert generic["LeaderMigration"]["controllerLeaders"][0] == {
        "name": "route-controller",
        "component": "*",
    }


def test_flagz_has_every_flag_in_order() -> None:
    values = flagz(read(["--vmodule=a=1", "--feature-gates=kube:WatchList=true"]))
    blank, head, warning, *lines = zpages.flagz(lambda: values).text().splitlines()
    assert (blank, head) == ("", "kube-controller-manager flagz")
    assert warning.startswith("Warning: This endpoint is not meant to be machine parseable")
    assert len(lines) == 150
    assert list(values) == sorted(values)
    for line in (
        "allow-metric-labels=[]",
        "attach-detach-reconcile-sync-period=1m0s",
        "authorization-always-allow-paths=[/healthz,/readyz,/livez]",
        "controllers=[*]",
        "feature-gates=kube:WatchList=true",
        "horizontal-pod-autoscaler-tolerance=0.1",
        "kube-api-qps=20",
        "leader-elect=true",
        "log-json-info-buffer-size=0",
        "node-sync-period=0s",
        "v=0",
        "vmodule=a=1",
    ):
        assert line in lines
