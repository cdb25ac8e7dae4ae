"""Flags beside the reference manager: the same names, types and defaults, and the same mistakes."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import subprocess
from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from pathlib import Path

import pytest

from steersman.manager import cli
from steersman.manager.configz import configz, flagz
from steersman.manager.flag_table import FLAGS, described
from steersman.manager.flags import usage
from steersman.manager.options import read as options_of
from tests.harness.child_process import Child, until
from tests.harness.envtest import ASSETS, MANAGER, RealPlane


def reference(*argv: str) -> subprocess.CompletedProcess[str]:
    program = Path(os.environ[ASSETS]) / "kube-controller-manager"
    return subprocess.run([program, *argv], capture_output=True, text=True, timeout=30)


LINE = re.compile(
    r"^ {2}(?:-(?P<short>\w), | {4})--(?P<name>[\w-]+)(?: (?P<type>\S+))?(?: {2,}|$)(?P<rest>.*)$"
)
DEFAULT = re.compile(r"\(default (.*)\)$")


def read(text: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Section, name, shorthand, type and default of the flags that a help shows."""
    section, found = "", ["", "", "", "", ""]
    for line in text.splitlines():
        if line.endswith(" flags:") and not line.startswith(" "):
            section = line
        elif match := LINE.match(line):
            if found[1]:
                yield (found[0], found[1], found[2], found[3], found[4])
            found = [section, match["name"], match["short"] or "", match["type"] or "", ""]
        if default := DEFAULT.search(line):
            found[4] = default[1]
    yield (found[0], found[1], found[2], found[3], found[4])


def test_the_help_has_the_same_flags_with_the_same_types_and_defaults() -> None:
    theirs = list(read(reference("--help").stdout))
    ours = list(read(usage(FLAGS, width=100_000)))
    assert len(ours) == 148
    assert ours == theirs


def test_the_help_offers_the_same_controllers_and_gates() -> None:
    theirs = reference("--help").stdout
    ours = usage(described(), width=100_000)
    assert re.findall(r"(\w+=true\|false \(\w+ - default=\w+\))", ours) == re.findall(
        r"kube:(\w+=true\|false \(\w+ - default=\w+\))", theirs
    )
    names = re.search(r"All controllers: (.*)", theirs)
    off = re.search(r"Disabled-by-default controllers: (.*?) \(", theirs)
    assert names is not None
    assert off is not None
    assert f"There are: {names[1]}. Off by default: {off[1]}." in ours


def test_their_own_defaults_are_what_flagz_shows() -> None:
    shown = {option.name: option.type.write(option.default) for option in FLAGS}
    for _, name, _, kind, default in read(reference("--help").stdout):
        if default and kind != "string":
            assert shown[name] == default


NOBODY = "--kubeconfig=/nowhere/at/all"
WRONG = [
    ["--attach-detach-reconcile-sync-period=10ms"],
    ["--bind-address=foo"],
    ["--kube-api-qps=x"],
    ["--node-eviction-rate=1e99"],
    ["--secure-port=x"],
    ["--secure-port=70000"],
    ["--secure-port=-1"],
    ["--tls-curve-preferences=a"],
    ["--tls-sni-cert-key=a"],
    ["--tls-sni-cert-key=a,b:"],
    ["--allow-metric-labels=foo"],
    ["--show-hidden-metrics-for-version=1.2"],
    ["-v=-1"],
    ["--v=99999999999"],
    ["-v"],
    ["-z"],
    ["--=1"],
    ["--nonesuch"],
    ["stray"],
    ["--leader-elect", "false"],
    ["--vmodule=x"],
    ["--vmodule=a=b"],
    ["--vmodule=a=1", "--logging-format=json"],
    ["--logging-format=xml"],
    ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
    ["--log-json-split-stream"],
    ["--log-text-info-buffer-size=2Ki"],
    ["--log-json-info-buffer-size=x"],
    ["--log-flush-frequency=0"],
    ["--log-flush-frequency=5"],
    ["--log-flush-frequency=5x"],
    ["--leader-elect=maybe"],
    ["--leader-elect-resource-lock=endpoints"],
    ["--requestheader-username-headers= "],
    ["--requestheader-uid-headers=a"],
    ["--requestheader-uid-headers=a", "--feature-gates=RemoteRequestHeaderUID=false"],
    ["--cloud-provider=aws"],
    ["--cidr-allocator-type=foo"],
    ["--service-cluster-ip-range=a,b,c"],
    ["--concurrent-job-syncs=0"],
    ["--concurrent-service-endpoint-syncs=0"],
    ["--max-endpoints-per-slice=1001"],
    ["--controllers=*,-nonesuch"],
    ["--controllers=-*"],
    ["--version=v1.2.3"],
    ["--version=maybe"],
    ["--help=maybe"],
    ["--feature-gates=Nonesuch=true"],
    ["--feature-gates=WatchList"],
    ["--feature-gates=WatchList=maybe"],
    ["--feature-gates=wardle:WatchList=true"],
    ["--feature-gates=WatchList=true,kube:AtomicFIFO=true"],
    ["--feature-gates=APIServerTracing=false"],
    ["--feature-gates=GangScheduling=true"],
    ["--feature-gates=GenericWorkload=true", "--emulated-version=1.33"],
    ["--emulated-version=x"],
    ["--emulated-version=kube=1.35.1"],
    ["--emulated-version=wardle=1.35"],
    ["--emulated-version=1.35,1.34"],
    ["--min-compatibility-version=1.30"],
    [
        "--cluster-signing-cert-file=/a",
        "--cluster-signing-kubelet-client-cert-file=/c",
        "--cluster-signing-kubelet-client-key-file=/d",
    ],
]


@pytest.mark.parametrize("argv", WRONG, ids=lambda argv: " ".join(argv))
def test_a_mistake_ends_both_in_the_same_words(argv: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    theirs = reference(NOBODY, *argv)
    assert cli.main(["run", NOBODY, *argv]) == theirs.returncode == 1
    said = capfd.readouterr().err
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    # Ours may go on with a hint, or with the flag where upstream does not name it.
    words = re.split(r"; (?:did you mean|see --help|write)| \(--", said.strip().removeprefix("Error: "))[0]
    assert unversioned(words) in unversioned(theirs.stderr.replace('\\"', '"'))


def unversioned(text: str) -> str:
    """A message without the version of the program: a binary built without stamps takes itself for v0.0.0."""
    text = re.sub(r'(default version ")v[^"]+', r"\1VERSION", text)
    return re.sub(r"(have the value ')[\d.]+", r"\1PREVIOUS", text)


@cache
def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def page(port: int, path: str) -> str:
    """What a manager answers; empty while it does not, or refuses."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=unverified())
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.read().decode() if response.status == 200 else ""
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


ODD = [
    "--controllers=*,-nodeipam",
    "--controllers=tokencleaner",
    "--bind-address=127.0.0.1",
    "--kube-api-burst=0x20",
    "--kube-api-qps=33.5",
    "--concurrent-gc-syncs=010",
    "--concurrent-rc-syncs=1_0",
    "--node-eviction-rate=1e-7",
    "--secondary-node-eviction-rate=1000000",
    "--unhealthy-zone-threshold=.5",
    "--horizontal-pod-autoscaler-tolerance=0.125",
    "--min-resync-period=1h30m",
    "--node-monitor-period=1500ms",
    "--route-reconciliation-period=1.5us",
    "--namespace-sync-period=-2m",
    "--pvclaimbinder-sync-period=+90s",
    "--cluster-signing-duration=100h0.5s",
    '--requestheader-allowed-names=a,"b,c"',
    "--requestheader-allowed-names=d",
    "--tls-curve-preferences=23,24",
    "--tls-curve-preferences=25",
    "--allow-metric-labels=metric,label=a,b",
    "--feature-gates=kube:WatchList=true,kube:AtomicFIFO=true",
    "--feature-gates=kube:HPAScaleToZero=true",
    "--emulated-version=kube=1.36",
    "--log-text-info-buffer-size=0Ki",
    "--vmodule=a*=1,b=2,",
    "--vmodule=c=3",
    "--profiling=F",
    "--enable_hostpath_provisioner",
    "-v=1",
    "--v",
    "2",
]
"""Values that can be written in more than one way."""
SHOWN = re.compile(r"^([a-z0-9-]+)(?:: |:|=| )(.*)$")


def hold_lease(plane: RealPlane, namespace: str) -> None:
    """Hold the lease of a manager that is only to answer: its controllers, with such odd settings, never start."""
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-controller-manager", "namespace": namespace},
        "spec": {"holderIdentity": "the test", "leaseDurationSeconds": 86400},
    }
    plane.kubectl("create", "-f", "-", stdin=json.dumps(lease))


def answer(port: int, path: str, child: Child) -> str:
    """What a manager answers, as soon as it does."""
    found: list[str] = []

    def answered() -> bool:
        found[:] = [page(port, path)]
        return bool(found[0])

    until(answered, child, 60, f"{path} is shown")
    return found[0]


def test_values_are_shown_as_the_reference_shows_them(plane: RealPlane, namespace: str) -> None:
    port = plane.free_port()
    always = [
        "--authorization-always-allow-paths=/flagz,/configz",
        f"--leader-elect-resource-namespace={namespace}",
        f"--secure-port={port}",
        "--permit-port-sharing",
    ]
    hold_lease(plane, namespace)
    child = plane.manager(*ODD, *always, binary="kube-controller-manager")
    try:
        shown, configuration = answer(port, "/flagz", child), json.loads(answer(port, "/configz", child))
    finally:
        child.end()
    lines = shown.splitlines()[3:]
    theirs: dict[str, str] = {
        match[1]: match[2] for line in lines if (match := SHOWN.match(line)) is not None
    }
    options = options_of([*ODD, *always, f"--kubeconfig={plane.kubeconfig(MANAGER)}"])
    ours = flagz(options)
    assert ours == theirs
    # The reference makes this list of a map, so its order is drawn anew each time.
    [values] = configuration.values()
    values["GarbageCollectorController"]["GCIgnoredResources"].sort(key=itemgetter("Group"))
    assert configz(options) == configuration


def test_the_command_line_that_kubeadm_writes_runs_unchanged(plane: RealPlane) -> None:
    # Where kubeadm has its files, and the name of its cluster, differ here; and the port, for others may serve, too.
    kubeconfig, port = plane.kubeconfig(MANAGER), plane.free_port()
    child = plane.manager(
        "--allocate-node-cidrs=true",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--client-ca-file={plane.ca}",
        "--cluster-cidr=10.244.0.0/16",
        "--cluster-name=kubernetes",
        f"--cluster-signing-cert-file={plane.ca}",
        f"--cluster-signing-key-file={plane.ca_key}",
        "--controllers=*,bootstrapsigner,tokencleaner",
        "--leader-elect=true",
        f"--requestheader-client-ca-file={plane.ca}",
        f"--root-ca-file={plane.ca}",
        f"--service-account-private-key-file={plane.service_account_key}",
        "--service-cluster-ip-range=10.96.0.0/12",
        "--use-service-account-credentials=true",
        f"--secure-port={port}",
        "--permit-port-sharing",
    )
    try:
        until(lambda: page(port, "/healthz") == "ok", child, 60, "it is well")
        until(lambda: "caches synced" in child.log(), child, 60, "its controllers start")
        assert "serviceaccount-token-controller" in child.log()
    finally:
        child.stop()
