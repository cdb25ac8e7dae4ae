"""Every mistake in the flags is one line, in upstream's words, that names the flag."""

from __future__ import annotations

import pytest

from steersman.manager.flags import UsageError
from steersman.manager.options import read

NODES = ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"]
BOTH = ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16,fd00::/48"]
SIX = ["--allocate-node-cidrs", "--cluster-cidr=fd00::/48"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--attach-detach-reconcile-sync-period=10ms"], "duration time must be greater than one second"),
        (
            ["--bind-address=foo"],
            'invalid argument "foo" for "--bind-address" flag: failed to parse IP: "foo"',
        ),
        (["--kube-api-qps=x"], '"--kube-api-qps" flag: strconv.ParseFloat: parsing "x": invalid syntax'),
        (["--node-eviction-rate=1e99"], 'strconv.ParseFloat: parsing "1e99": value out of range'),
        (["--tls-curve-preferences=a"], '"--tls-curve-preferences" flag: strconv.ParseInt: parsing "a"'),
        (["--tls-curve-preferences=23,99"], "curve preference 99 is not supported"),
        (["--tls-sni-cert-key=a"], "expected comma separated certificate and key file paths"),
        (["--tls-sni-cert-key=a,b:"], "empty names list is not allowed"),
        (["--allow-metric-labels=foo"], "foo must be formatted as key=value"),
        (["--allow-metric-labels=foo=bar"], "must have keys with format `metricName,labelName`"),
        (["--disabled-metrics=a b"], 'got "a b" (--disabled-metrics)'),
        (["--show-hidden-metrics-for-version=1.2"], "must be omitted or have the value '1.35'"),
        (
            ["-v=-1"],
            'invalid argument "-1" for "-v, --v" flag: strconv.ParseUint: parsing "-1": invalid syntax',
        ),
        (["--v=99999999999"], 'strconv.ParseUint: parsing "99999999999": value out of range'),
        (["--vmodule=x"], '"--vmodule" flag: "x" does not have the pattern=N format'),
        (["--vmodule=a=b"], 'parsing verbosity in "a=b": strconv.ParseUint: parsing "b": invalid syntax'),
        (
            ["--vmodule=a=1", "--logging-format=json"],
            "vmodule: Forbidden: Only supported for text log format",
        ),
        (["--logging-format=xml"], 'format: Invalid value: "xml": Unsupported log format'),
        (
            ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
            "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature",
        ),
        (
            ["--log-json-split-stream"],
            "options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled",
        ),
        (
            ["--log-text-info-buffer-size=2Ki"],
            "options.text.infoBufferSize: Forbidden: Feature LoggingAlphaOptions",
        ),
        (["--log-json-info-buffer-size=x"], "quantities must match the regular expression"),
        (["--log-flush-frequency=0"], 'flushFrequency: Invalid value: "0s": Must be greater than zero'),
        (["--leader-elect-resource-lock=endpoints"], 'resourceLock value must be "leases"'),
        (["--leader-elect-resource-name="], "resource name may not be empty (--leader-elect-resource-name)"),
        (["--leader-elect-lease-duration=5s"], "leaseDuration must be greater than renewDeadline"),
        (["--leader-elect-renew-deadline=2s"], "renewDeadline must be greater than retryPeriod*JitterFactor"),
        (["--leader-elect-retry-period=0s"], "retryPeriod must be greater than zero"),
        (["--secure-port=70000"], "--secure-port 70000 must be between 1 and 65535, inclusive."),
        (["--secure-port=-1"], "--secure-port -1 must be between 0 and 65535, inclusive."),
        (["--requestheader-username-headers= "], 'empty value in "requestheader-username-headers"'),
        (
            ["--requestheader-uid-headers=a"],
            "--requestheader-uid-headers is set without specifying the standard",
        ),
        (
            ["--requestheader-uid-headers=X-Remote-Uid", "--feature-gates=RemoteRequestHeaderUID=false"],
            '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled',
        ),
        (["--authorization-always-allow-paths=/a*b"], 'only trailing * allowed in "a*b"'),
        (
            ["--cloud-provider=aws"],
            'cloud provider "aws" was specified, but built-in cloud providers are disabled.',
        ),
        (["--cloud-provider=aws"], "(--cloud-provider accepts the installed ones: local)"),
        (["--cidr-allocator-type=CloudAllocator"], "The ipam CloudAllocator is not available"),
        (
            ["--cluster-signing-kubelet-serving-cert-file=/a"],
            "--cluster-signing-kubelet-serving-cert-file is given without --cluster-signing-kubelet-serving-key-file",
        ),
        (
            ["--cluster-signing-legacy-unknown-key-file=/a", "--controllers=job"],
            "--cluster-signing-legacy-unknown-key-file is given without --cluster-signing-legacy-unknown-cert-file",
        ),
        (
            [
                "--cluster-signing-cert-file=/a",
                "--cluster-signing-key-file=/b",
                "--cluster-signing-kubelet-client-cert-file=/c",
                "--cluster-signing-kubelet-client-key-file=/d",
            ],
            "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags",
        ),
        (["--concurrent-job-syncs=0"], "concurrent-job-syncs must be greater than 0, but got 0"),
        (
            ["--concurrent-statefulset-syncs=-1"],
            "concurrent-statefulset-syncs must be greater than 0, but got -1",
        ),
        (
            ["--concurrent-service-endpoint-syncs=0"],
            "concurrent-service-endpoint-syncs must not be less than 1, but got 0",
        ),
        (
            ["--max-endpoints-per-slice=1001"],
            "max-endpoints-per-slice must not be more than 1000, but got 1001",
        ),
        (
            ["--mirroring-max-endpoints-per-subset=0"],
            "mirroring-max-endpoints-per-subset must not be less than 1",
        ),
        (["--controllers=*,-nope"], '"nope" is not in the list of known controllers'),
        (["--version=v1.2.3"], 'version "v1.2.3" must match major/minor/patch of default version "v1.36.4"'),
        (
            ["--service-cluster-ip-range=a,b,c"],
            "--service-cluster-ip-range can not contain more than two entries",
        ),
        (["--allocate-node-cidrs"], "Must specify --cluster-cidr if --allocate-node-cidrs is set"),
        (["--allocate-node-cidrs", "--cluster-cidr=x"], "invalid CIDR[0]: <nil> (invalid CIDR address: x)"),
        (["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/255.255.0.0"], "invalid CIDR[0]"),
        ([*NODES, "--cidr-allocator-type="], "invalid CIDR allocator type: "),
        (["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16,11.0.0.0/16"], "not configured as dual stack"),
        (
            ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16,fd00::/48,fd01::/48"],
            "len of ClusterCIDRs==3",
        ),
        ([*NODES, "--service-cluster-ip-range=10.0.0.0"], "invalid CIDR[0]"),
        ([*NODES, "--service-cluster-ip-range=10.0.0.0/8,11.0.0.0/8"], "are not dualstack"),
        (
            [*NODES, "--node-cidr-mask-size=8"],
            "mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size",
        ),
        (
            [*NODES, "--node-cidr-mask-size=64"],
            "mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size",
        ),
        (
            [*NODES, "--node-cidr-mask-size=24", "--node-cidr-mask-size-ipv4=24"],
            "is not allowed if --node-cidr-mask-size is set",
        ),
        (
            [*NODES, "--node-cidr-mask-size-ipv6=64"],
            "--node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster",
        ),
        (
            [*SIX, "--node-cidr-mask-size-ipv4=24"],
            "--node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster",
        ),
        ([*SIX, "--node-cidr-mask-size=80"], "the node CIDR size is too big"),
        (
            [*BOTH, "--node-cidr-mask-size=24"],
            "usage of --node-cidr-mask-size is not allowed with dual-stack clusters",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_it(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(argv)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "argv",
    [
        NODES,
        BOTH,
        SIX,
        [*NODES, "--node-cidr-mask-size=20"],
        [*BOTH, "--node-cidr-mask-size-ipv4=26", "--node-cidr-mask-size-ipv6=60"],
        [*BOTH, "--service-cluster-ip-range=10.96.0.0/12,fd01::/108"],
        ["--cluster-cidr=nonsense"],
        [
            "--leader-elect=false",
            "--leader-elect-lease-duration=1s",
            "--leader-elect-resource-lock=endpoints",
        ],
        [
            "--log-json-split-stream",
            "--log-json-info-buffer-size=2Ki",
            "--feature-gates=LoggingAlphaOptions=true",
        ],
        ["--logging-format=json"],
        ["--cluster-signing-kubelet-client-cert-file=/c", "--cluster-signing-kubelet-client-key-file=/d"],
        ["--requestheader-uid-headers=X-Remote-Uid"],
        ["--authorization-always-allow-paths=/debug/*"],
        ["--cloud-provider=external"],
        ["--cloud-provider=local"],
        ["--show-hidden-metrics-for-version=1.35"],
        ["--allow-metric-labels=metric,label=a,b"],
        ["--version=v1.36.4-mine"],
    ],
)
def test_what_upstream_accepts_is_accepted(argv: list[str]) -> None:
    assert read(argv)


def test_several_mistakes_are_told_at_once_on_one_line() -> None:
    with pytest.raises(UsageError) as caught:
        read(["--secure-port=-1", "--concurrent-job-syncs=0"])
    assert str(caught.value) == (
        "[concurrent-job-syncs must be greater than 0, but got 0, "
        "--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure port]"
    )
