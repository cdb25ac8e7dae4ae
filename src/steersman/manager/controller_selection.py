"""``--controllers``: which of kube-controller-manager's controllers run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steersman.api.go_quote import quote
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller, Settings
from steersman.intent.settings import DEFAULTS
from steersman.manager.flags import UsageError, closest

_TABLE = """
    bootstrap-signer-controller bootstrapsigner
    certificatesigningrequest-approving-controller csrapproving
    certificatesigningrequest-cleaner-controller csrcleaner
    certificatesigningrequest-signing-controller csrsigning
    cloud-node-lifecycle-controller cloud-node-lifecycle
    clusterrole-aggregation-controller clusterrole-aggregation
    cronjob-controller cronjob
    daemonset-controller daemonset
    deployment-controller deployment
    device-taint-eviction-controller
    disruption-controller disruption
    endpoints-controller endpoint
    endpointslice-controller endpointslice
    endpointslice-mirroring-controller endpointslicemirroring
    ephemeral-volume-controller ephemeral-volume
    garbage-collector-controller garbagecollector
    horizontal-pod-autoscaler-controller horizontalpodautoscaling
    job-controller job
    kube-apiserver-serving-clustertrustbundle-publisher-controller
    legacy-serviceaccount-token-cleaner-controller legacy-service-account-token-cleaner
    namespace-controller namespace
    node-ipam-controller nodeipam
    node-lifecycle-controller nodelifecycle
    node-route-controller route
    persistentvolume-attach-detach-controller attachdetach
    persistentvolume-binder-controller persistentvolume-binder
    persistentvolume-expander-controller persistentvolume-expander
    persistentvolume-protection-controller pv-protection
    persistentvolumeclaim-protection-controller pvc-protection
    pod-garbage-collector-controller podgc
    podcertificaterequest-cleaner-controller
    podgroup-protection-controller
    replicaset-controller replicaset
    replicationcontroller-controller replicationcontroller
    resourceclaim-controller resource-claim-controller
    resourcepoolstatusrequest-controller
    resourcequota-controller resourcequota
    root-ca-certificate-publisher-controller root-ca-cert-publisher
    selinux-warning-controller
    service-cidr-controller
    service-lb-controller service
    serviceaccount-controller serviceaccount
    serviceaccount-token-controller serviceaccount-token
    statefulset-controller statefulset
    storage-version-migrator-controller svm
    storageversion-garbage-collector-controller storage-version-gc
    taint-eviction-controller
    token-cleaner-controller tokencleaner
    ttl-after-finished-controller ttl-after-finished
    ttl-controller ttl
    validatingadmissionpolicy-status-controller
    volumeattributesclass-protection-controller
"""
KNOWN: dict[str, tuple[str, ...]] = {
    name: tuple(aliases) for name, *aliases in map(str.split, _TABLE.strip().splitlines())
}
"""Every controller name of kube-controller-manager 1.36, with its aliases."""
OFF = ("bootstrap-signer-controller", "selinux-warning-controller", "token-cleaner-controller")
"""Controllers disabled by default."""


def unknown(selection: Sequence[str]) -> Iterator[str]:
    """Errors for names in ``--controllers`` that no controller has."""
    names = [name for known, aliases in KNOWN.items() for name in (known, *aliases)]
    for word in selection:
        bare = word.removeprefix("-")
        if word != "*" and bare not in names:
            close = closest(bare, names)
            hint = f"; did you mean {quote(close)}?" if close else ""
            yield f"{quote(bare)} is not in the list of known controllers{hint}"


def enabled(selection: Sequence[str]) -> tuple[str, ...]:
    """Names of the controllers that ``--controllers`` enables. As upstream, the first matching entry counts."""

    def runs(name: str) -> bool:
        names = (name, *KNOWN[name])
        for word in selection:
            if word in names:
                return True
            if word.startswith("-") and word[1:] in names:
                return False
        return "*" in selection and name not in OFF

    return tuple(filter(runs, KNOWN))


def select(selection: Sequence[str], settings: Settings = DEFAULTS) -> tuple[Controller[Any], ...]:
    """The controllers that ``--controllers`` enables. Raises `UsageError`."""
    for problem in unknown(selection):
        raise UsageError(problem)
    names = enabled(selection)
    return tuple(controller for controller in CONTROLLERS if _selected_by(controller, settings) in names)


def _selected_by(controller: Controller[Any], settings: Settings) -> str:
    """The name by which ``--controllers`` selects a controller."""
    whole = controller.part_of
    return controller.name if whole is None or settings.enabled(whole.unless) else whole.controller


def missing(selection: Sequence[str]) -> tuple[str, ...]:
    """Names of enabled controllers that this program does not implement."""
    implemented = [controller.name for controller in CONTROLLERS]
    return tuple(name for name in enabled(selection) if name not in implemented)
