"""LimitRanger: default requests and limits of containers, and the limits of LimitRanges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from steersman.api.generated.core_v1 import Container, LimitRange, PodSpec
from steersman.api.quantity import Quantity
from steersman.api.quota.compute import Amounts, parse_amounts, pod_total
from steersman.server.admission.plugin import AdmissionDenied, Listers, PodDraft, PodPlugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes, BeforeWrite

ANNOTATION = "kubernetes.io/limit-ranger"
CLAIM = "PersistentVolumeClaim"


class LimitRanger(PodPlugin, frozen=True):
    """Sets the defaults of a namespace's LimitRanges and denies objects that are out of range.

    differs: several violations of one LimitRange are reported in order of name; upstream's order varies.
    """

    name: ClassVar[str] = "LimitRanger"
    validates: ClassVar[tuple[str, ...]] = ("persistentvolumeclaims",)
    reads: ClassVar[tuple[str, ...]] = ("limitranges",)

    def mutate_spec(self, draft: PodDraft, namespace: str, listers: Listers) -> PodDraft:
        for limit_range in listers.list("limitranges", namespace):
            draft = with_defaults(draft, limit_range)
        return draft

    def validate_spec(
        self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, listers: Listers
    ) -> str:
        for limit_range in listers.list("limitranges", namespace):
            violation = _aggregate(list(_pod_violations(spec, limit_range)))
            if violation:
                return violation
        return ""

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        if request.old is not None and request.old.metadata.deletionTimestamp is not None:
            return None
        requests = parse_amounts(request.obj.spec.resources.requests)
        for limit_range in listers.list("limitranges", request.namespace):
            violations: list[str] = []
            for item in limit_range.spec.limits or ():
                if item.type == CLAIM:
                    violations += _violations(
                        item.min, lambda name, least: min_violation(CLAIM, name, least, requests, {})
                    )
                    violations += _violations(
                        item.max, lambda name, most: max_request_violation(CLAIM, name, most, requests)
                    )
            violation = _aggregate(violations)
            if violation:
                raise AdmissionDenied(violation)
        return None


# -- defaults ---------------------------------------------------------------------------------


def with_defaults(draft: PodDraft, limit_range: LimitRange) -> PodDraft:
    """The draft with the defaults of one LimitRange, and an annotation that lists them."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in limit_range.spec.limits or ():
        if item.type == "Container":
            requests.update(item.defaultRequest)
            limits.update(item.default)
    if not requests and not limits:
        return draft
    set_fields: list[str] = []

    def with_default_resources(container: Container, kind_text: str) -> Container:
        resources = container.resources
        missing_requests = {
            name: requests[name] for name in sorted(requests) if name not in resources.requests
        }
        missing_limits = {name: limits[name] for name in sorted(limits) if name not in resources.limits}
        if missing_requests:
            set_fields.append(f"{', '.join(missing_requests)} request for {kind_text} {container.name}")
        if missing_limits:
            set_fields.append(f"{', '.join(missing_limits)} limit for {kind_text} {container.name}")
        if not missing_requests and not missing_limits:
            return container
        resources = put(
            resources,
            requests={**resources.requests, **missing_requests},
            limits={**resources.limits, **missing_limits},
        )
        return put(container, resources=resources)

    spec = draft.spec
    main = tuple([with_default_resources(container, "container") for container in spec.containers])
    init = tuple([with_default_resources(container, "init container") for container in spec.initContainers])
    if not set_fields:
        return draft
    note = f"LimitRanger plugin set: {'; '.join(set_fields)}"
    return PodDraft(put(spec, containers=main, initContainers=init), {**draft.notes, ANNOTATION: note})


# -- ranges -----------------------------------------------------------------------------------


def _pod_violations(spec: PodSpec, limit_range: LimitRange) -> Iterator[str]:
    for item in limit_range.spec.limits or ():
        if item.type == "Container":
            parts = [
                (parse_amounts(container.resources.requests), parse_amounts(container.resources.limits))
                for container in (*spec.containers, *spec.initContainers)
            ]
        elif item.type == "Pod":
            parts = [(pod_total(spec, "requests"), pod_total(spec, "limits"))]
        else:
            continue
        for part in parts:
            for amounts, check in (
                (item.min, min_violation),
                (item.max, max_violation),
                (item.maxLimitRequestRatio, ratio_violation),
            ):
                for name in sorted(amounts):
                    violation = check(item.type, name, Quantity.parse(amounts[name]), *part)
                    if violation:
                        yield violation


def _violations(amounts: Mapping[str, Any], check: Callable[[str, Quantity], str]) -> list[str]:
    violations = [check(name, Quantity.parse(amounts[name])) for name in sorted(amounts)]
    return [violation for violation in violations if violation]


def _aggregate(violations: list[str]) -> str:
    lines = list(dict.fromkeys(violations))
    return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]" if lines else ""


def min_violation(kind: str, name: str, least: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        return f"{head}.  No request is specified"
    if requests[name].milli() < least.milli():
        return f"{head}, but request is {requests[name]}"
    if name in limits and limits[name].milli() < least.milli():
        return f"{head}, but limit is {limits[name]}"
    return ""


def max_violation(kind: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"maximum {name} usage per {kind} is {most}"
    if name not in limits:
        return f"{head}.  No limit is specified"
    if limits[name].milli() > most.milli():
        return f"{head}, but limit is {limits[name]}"
    if name in requests and requests[name].milli() > most.milli():
        return f"{head}, but request is {requests[name]}"
    return ""


def max_request_violation(kind: str, name: str, most: Quantity, requests: Amounts) -> str:
    """The violation of a maximum by a request, for objects without limits."""
    head = f"maximum {name} usage per {kind} is {most}"
    if name not in requests:
        return f"{head}.  No request is specified"
    return f"{head}, but request is {requests[name]}" if requests[name].milli() > most.milli() else ""


def ratio_violation(kind: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"{name} max limit to request ratio per {kind} is {most}"
    if name not in requests or not requests[name].milli():
        return f"{head}, but no request is specified or request is 0"
    if name not in limits or not limits[name].milli():
        return f"{head}, but no limit is specified or limit is 0"
    ratio = limits[name].milli() / requests[name].milli()
    return f"{head}, but provided ratio is {ratio:f}" if ratio * 1000 > most.milli() else ""
