"""Every controller there is, in the order they start. One file each; the list is explicit."""

from __future__ import annotations

from typing import Any

from steersman.controllers import (
    bootstrap,
    clusterroleaggregation,
    clustertrustbundlepublisher,
    cronjob,
    daemonset,
    deployment,
    disruption,
    garbagecollector,
    horizontalpodautoscaler,
    job,
    legacyserviceaccounttoken,
    namespace,
    podgc,
    replicaset,
    resourcequota,
    rootcacertpublisher,
    serviceaccount,
    serviceaccounttoken,
    statefulset,
    storageversiongc,
    storageversionmigrator,
    ttlafterfinished,
    validatingadmissionpolicystatus,
)
from steersman.controllers.certificates import approver, cleaner, signer
from steersman.intent.controller import Controller

CONTROLLERS: tuple[Controller[Any], ...] = (
    serviceaccounttoken.controller,
    serviceaccount.controller,
    legacyserviceaccounttoken.controller,
    rootcacertpublisher.controller,
    clustertrustbundlepublisher.controller,
    storageversiongc.controller,
    storageversionmigrator.controller,
    clusterroleaggregation.controller,
    bootstrap.signer,
    bootstrap.cleaner,
    approver.controller,
    signer.controller,
    cleaner.controller,
    cleaner.pod_requests,
    namespace.controller,
    garbagecollector.controller,
    resourcequota.controller,
    podgc.controller,
    disruption.controller,
    cronjob.controller,
    daemonset.controller,
    horizontalpodautoscaler.controller,
    job.controller,
    statefulset.controller,
    deployment.controller,
    replicaset.replicaset,
    replicaset.replicationcontroller,
    ttlafterfinished.controller,
    validatingadmissionpolicystatus.controller,
)
