"""Services: no pod matches, no pod is ready, a named port is missing, no load balancer. Ingresses: no such Service or port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from steersman.explain.model import Case, Document, Finding, Weight
from steersman.explain.situations.registry import situation
from steersman.explain.situations.workloads import is_ready
from steersman.explain.words import count, some

SLICES = "endpointslice-controller"
SERVICE_NAME = "kubernetes.io/service-name"
"""The label of an EndpointSlice that names its Service."""
PENDING = timedelta(seconds=5)
"""A load balancer that is younger may be on its way."""


def selected(case: Case) -> list[Document]:
    """The pods that a Service selects."""
    selector: Mapping[str, str] = case.spec.get("selector") or {}
    if not selector:
        return []
    return [
        pod
        for pod in case.snapshot.objects("Pod", case.ref.namespace)
        if selector.items() <= (pod["metadata"].get("labels") or {}).items()
    ]


@situation("Service")
def no_endpoints(case: Case) -> Iterator[Finding]:
    """A Service without an endpoint."""
    if case.spec.get("type") == "ExternalName":
        return
    if not case.spec.get("selector"):
        if case.snapshot.known("EndpointSlice") and not listed_endpoints(case):
            yield Finding(
                code="no-slice",
                subject=case.ref,
                cause="it has no selector, and no EndpointSlice names endpoints of it",
                controller=SLICES,
                next="it has endpoints when an EndpointSlice with the label of its name lists some",
                remedy=f"set spec.selector, or create an EndpointSlice with the label {SERVICE_NAME}={case.ref.name}",
            )
        return
    pods = selected(case)
    if not pods:
        yield _no_match(case)
        return
    if not any(is_ready(pod) for pod in pods) and not case.spec.get("publishNotReadyAddresses"):
        yield Finding(
            code="no-ready-pod",
            subject=case.ref,
            cause=f"it selects {count(len(pods), 'pod')}, of which none is ready, so it has no endpoint",
            controller=SLICES,
            next="a pod becomes an endpoint as soon as it is ready",
            weight=Weight.CONSEQUENCE,
        )


def listed_endpoints(case: Case) -> int:
    """The number of endpoints that the EndpointSlices of a Service list."""
    return sum(
        len(each.get("endpoints") or ())
        for each in case.snapshot.objects("EndpointSlice", case.ref.namespace)
        if (each["metadata"].get("labels") or {}).get(SERVICE_NAME) == case.ref.name
    )


def _no_match(case: Case) -> Finding:
    selector = ", ".join(f"{name}={value}" for name, value in case.spec["selector"].items())
    close = [
        pod["metadata"]["name"]
        for pod in case.snapshot.objects("Pod", case.ref.namespace)
        if case.spec["selector"].items() & (pod["metadata"].get("labels") or {}).items()
    ]
    hint = f"; some labels match those of {some(close)}" if close else ""
    return Finding(
        code="no-match",
        subject=case.ref,
        cause=f"no pod in namespace {case.ref.namespace} has the labels of its selector ({selector}){hint}",
        controller=SLICES,
        next="a pod with these labels becomes an endpoint as soon as it is ready",
        remedy="correct spec.selector, or the labels in the pod template",
    )


@situation("Service")
def missing_port(case: Case) -> Iterator[Finding]:
    """A named targetPort that no container of the selected pods has."""
    for port in case.spec.get("ports") or ():
        target = port.get("targetPort")
        if not isinstance(target, str):
            continue
        pods = selected(case)
        names = {
            each.get("name")
            for pod in pods
            for container in (pod.get("spec") or {}).get("containers", ())
            for each in container.get("ports") or ()
        }
        if pods and target not in names:
            yield Finding(
                code="target-port",
                subject=case.ref,
                cause=f"its targetPort {target} is the name of no port of its pods, so it has no endpoint for it",
                controller=SLICES,
                remedy=f"name a containerPort {target} in the pod template, or give its number",
            )


@situation("Service")
def no_load_balancer(case: Case) -> Iterator[Finding]:
    """A load balancer that no cloud provider creates."""
    if case.spec.get("type") != "LoadBalancer" or (case.status.get("loadBalancer") or {}).get("ingress"):
        return
    created = case.time(case.meta.get("creationTimestamp"))
    if created is not None and case.now - created < PENDING:
        return
    failed = case.snapshot.events(case.document, "SyncLoadBalancerFailed")
    if failed:
        cause = f"the cloud provider refuses its load balancer: {failed[0].get('message', '')}"
        remedy = ""
    elif case.snapshot.events(case.document, "EnsuringLoadBalancer"):
        cause, remedy = "its load balancer is being created", ""
    elif own := case.spec.get("loadBalancerClass"):
        cause = f"no controller of loadBalancerClass {own} has picked it up, so it gets no external address"
        remedy = "run the controller of that class, or create the Service anew without loadBalancerClass"
    else:
        cause = "no cloud provider has picked it up, so it gets no external address"
        remedy = "run a cloud-controller-manager or MetalLB; or use type NodePort"
    yield Finding(
        code="load-balancer",
        subject=case.ref,
        cause=cause,
        controller="service-lb-controller",
        next="its external address stays <pending> until then",
        remedy=remedy,
    )


@situation("Ingress")
def no_ingress_class(case: Case) -> Iterator[Finding]:
    """An Ingress whose class does not exist."""
    name = case.spec.get("ingressClassName")
    if not name or not case.snapshot.known("IngressClass"):
        return
    if case.snapshot.get("IngressClass", "", name) is None:
        yield Finding(
            code="ingress-class",
            subject=case.ref,
            cause=f"IngressClass {name} does not exist, so no ingress controller serves it",
            controller="the ingress controller",
            remedy=f"create IngressClass {name}, or name one of kubectl get ingressclasses",
        )


def backends(case: Case) -> Iterator[Mapping[str, Any]]:
    """The Services that an Ingress names, each with its port."""
    rules = [
        path for rule in case.spec.get("rules") or () for path in (rule.get("http") or {}).get("paths") or ()
    ]
    for backend in (case.spec.get("defaultBackend"), *(path.get("backend") for path in rules)):
        if backend and backend.get("service"):
            yield backend["service"]


@situation("Ingress")
def no_backend(case: Case) -> Iterator[Finding]:
    """An Ingress whose Service, or a port of it, does not exist."""
    if not case.snapshot.known("Service"):
        return
    told: dict[str, None] = {}
    for backend in backends(case):
        name, port = str(backend.get("name")), backend.get("port") or {}
        service = case.snapshot.get("Service", case.ref.namespace, name)
        if service is None:
            told[f"Service {name}, which it routes to, does not exist in namespace {case.ref.namespace}"] = (
                None
            )
            continue
        ports = (service.get("spec") or {}).get("ports") or ()
        wanted = port.get("name") or port.get("number")
        if wanted not in [each.get("name" if port.get("name") else "port") for each in ports]:
            told[f"Service {name}, which it routes to, has no port {wanted}"] = None
    for cause in told:
        yield Finding(
            code="backend",
            subject=case.ref,
            cause=cause,
            controller="the ingress controller",
            next="requests for it are answered with 503, or as the ingress controller chooses",
            remedy="create the Service, or correct the backend of the Ingress",
        )
