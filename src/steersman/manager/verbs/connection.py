"""The flags by which verbs find a cluster, and the trace of its manager."""

from __future__ import annotations

from steersman.manager.flag_types import (
    FILE,
    STRING,
)
from steersman.manager.verb import flag

KUBECONFIG = "steersman.kubeconfig"
"""The kubeconfig that ``steersman up`` writes by default, and that other verbs look for."""
CONNECTION = flag(
    "kubeconfig",
    FILE,
    "",
    f"Kubeconfig of the cluster. By default ./{KUBECONFIG} if it exists, else $KUBECONFIG or ~/.kube/config.",
)
TRACE = (
    flag(
        "trace-url",
        STRING,
        "",
        "Secure port of a `steersman run`, such as https://127.0.0.1:10257, whose trace to use. By default that of the API "
        "server, if it is `steersman up`.",
    ),
    flag("trace-ca", FILE, "", "CA of that port. By default that of the cluster."),
)
"""The flags of verbs that read the trace of a manager."""
