"""The controllers of kube-controller-manager, in the order they start: a file or a folder each, listed explicitly.

The first line of each names it as kube-controller-manager does, and its form: a *decision* looks at caches only (but for
a name that is taken, or an adoption), a *dialogue* also reads objects live half-way, and a *service* does real work
besides, such as signing a certificate. All of them write through actions only.
"""

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
    endpoints,
    endpointslice,
    endpointslicemirroring,
    garbagecollector,
    horizontalpodautoscaler,
    job,
    legacyserviceaccounttoken,
    namespace,
    nodeipam,
    nodelifecycle,
    podgc,
    podgroupprotection,
    pvcprotection,
    pvprotection,
    replicaset,
    resourcequota,
    rootcacertpublisher,
    serviceaccount,
    serviceaccounttoken,
    servicecidr,
    statefulset,
    storageversiongc,
    storageversionmigrator,
    tainteviction,
    ttl,
    ttlafterfinished,
    vacprotection,
    validatingadmissionpolicystatus,
)
from steersman.controllers.certificates import approver, cleaner, signer
from steersman.controllers.cloud import node_lifecycle, node_route, service_lb
from steersman.intent.controller import Controller

CONTROLLERS: tuple[Controller[Any], ...] = (
    serviceaccounttoken.controller,
    endpoints.controller,
    endpointslice.controller,
    endpointslicemirroring.controller,
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
    nodelifecycle.controller,
    namespace.controller,
    garbagecollector.controller,
    resourcequota.controller,
    podgc.controller,
    disruption.controller,
    cronjob.controller,
    daemonset.controller,
    horizontalpodautoscaler.controller,
    job.controller,
    podgroupprotection.controller,
    statefulset.controller,
    deployment.controller,
    replicaset.replicaset,
    replicaset.replicationcontroller,
    ttl.controller,
    ttlafterfinished.controller,
    service_lb.controller,
    node_route.controller,
    node_lifecycle.controller,
    pvcprotection.controller,
    pvprotection.controller,
    vacprotection.controller,
    validatingadmissionpolicystatus.controller,
    nodeipam.controller,
    tainteviction.controller,
    servicecidr.controller,
)
