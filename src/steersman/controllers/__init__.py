"""Every controller there is, in the order they start. One file each; the list is explicit."""

from __future__ import annotations

from typing import Any

from steersman.controllers import (
    autoscaler,
    bootstrap,
    clusterroleaggregation,
    cronjob,
    daemonset,
    deployment,
    disruption,
    garbagecollector,
    job,
    legacytokens,
    namespace,
    podgc,
    replicaset,
    resourcequota,
    rootca,
    serviceaccount,
    statefulset,
    storagemigration,
    storageversiongc,
    tokens,
    trustbundle,
    ttlafterfinished,
    validatingadmissionpolicystatus,
)
from steersman.controllers.certificates import approving, cleaning, signing
from steersman.intent.controller import Controller

CONTROLLERS: tuple[Controller[Any], ...] = (
    tokens.controller,
    serviceaccount.controller,
    legacytokens.controller,
    rootca.controller,
    trustbundle.controller,
    storageversiongc.controller,
    storagemigration.controller,
    clusterroleaggregation.controller,
    bootstrap.signer,
    bootstrap.cleaner,
    approving.controller,
    signing.controller,
    cleaning.controller,
    cleaning.pods,
    namespace.controller,
    garbagecollector.controller,
    resourcequota.controller,
    podgc.controller,
    disruption.controller,
    cronjob.controller,
    daemonset.controller,
    autoscaler.controller,
    job.controller,
    statefulset.controller,
    deployment.controller,
    replicaset.replicaset,
    replicaset.replicationcontroller,
    ttlafterfinished.controller,
    validatingadmissionpolicystatus.controller,
)
