"""LimitRanger: what containers get that ask for nothing, and how much anything may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from steersman.api.generated.core_v1 import Container, LimitRange, PodSpec
from steersman.api.quantity import Quantity
from steersman.api.quota.compute import Amounts, parse_amounts, pod_total
from steersman.server.admission.plugin import Draft, Lookups, PodPlugin, Refused
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes, Settle

ANNOTATION = "kubernetes.io/limit-ranger"
CLAIM = "PersistentVolumeClaim"


class LimitRanger(PodPlugin):
    """Fills in the defaults of a namespace's limit ranges; refuses what is out of range.

    differs: where several limits of one range are broken they are told in order of name; upstream's order varies.
    """

    name: ClassVar[str] = "LimitRanger"
    validates: ClassVar[tuple[str, ...]] = ("persistentvolumeclaims",)
    reads: ClassVar[tuple[str, ...]] = ("limitranges",)

    def fill(self, draft: Draft, namespace: str, look: Lookups) -> Draft:
        for limit_range in look.all("limitranges", namespace):
            draft = with_defaults(draft, limit_range)
        return draft

    def fault(self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, look: Lookups) -> str:
        for limit_range in look.all("limitranges", namespace):
            why = _told(list(_pod_faults(spec, limit_range)))
            if why:
                return why
        return ""

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        if request.old is not None and request.old.metadata.deletionTimestamp is not None:
            return None
        asked = parse_amounts(request.obj.spec.resources.requests)
        for limit_range in look.all("limitranges", request.namespace):
            found: list[str] = []
            for item in limit_range.spec.limits or ():
                if item.type == CLAIM:
                    found += _each(item.min, lambda name, least: at_least(CLAIM, name, least, asked, {}))
                    found += _each(item.max, lambda name, most: at_most_asked(CLAIM, name, most, asked))
            why = _told(found)
            if why:
                raise Refused(why)
        return None


# -- defaults ---------------------------------------------------------------------------------


def with_defaults(draft: Draft, limit_range: LimitRange) -> Draft:
    """The spec with the defaults of one range, and a note that says which."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in limit_range.spec.limits or ():
        if item.type == "Container":
            requests.update(item.defaultRequest)
            limits.update(item.default)
    if not requests and not limits:
        return draft
    said: list[str] = []

    def filled(container: Container, words: str) -> Container:
        resources = container.resources
        lacks = {name: requests[name] for name in sorted(requests) if name not in resources.requests}
        free = {name: limits[name] for name in sorted(limits) if name not in resources.limits}
        if lacks:
            said.append(f"{', '.join(lacks)} request for {words} {container.name}")
        if free:
            said.append(f"{', '.join(free)} limit for {words} {container.name}")
        if not lacks and not free:
            return container
        resources = put(
            resources, requests={**resources.requests, **lacks}, limits={**resources.limits, **free}
        )
        return put(container, resources=resources)

    spec = draft.spec
    main = tuple([filled(container, "container") for container in spec.containers])
    init = tuple([filled(container, "init container") for container in spec.initContainers])
    if not said:
        return draft
    note = f"LimitRanger plugin set: {'; '.join(said)}"
    return Draft(put(spec, containers=main, initContainers=init), {**draft.notes, ANNOTATION: note})


# -- ranges -----------------------------------------------------------------------------------


def _pod_faults(spec: PodSpec, limit_range: LimitRange) -> Iterator[str]:
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
                (item.min, at_least),
                (item.max, at_most),
                (item.maxLimitRequestRatio, in_ratio),
            ):
                for name in sorted(amounts):
                    why = check(item.type, name, Quantity.parse(amounts[name]), *part)
                    if why:
                        yield why


def _each(amounts: Mapping[str, Any], check: Callable[[str, Quantity], str]) -> list[str]:
    found = [check(name, Quantity.parse(amounts[name])) for name in sorted(amounts)]
    return [why for why in found if why]


def _told(faults: list[str]) -> str:
    lines = list(dict.fromkeys(faults))
    return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]" if lines else ""


def at_least(kind: str, name: str, least: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        return f"{head}.  No request is specified"
    if requests[name].milli() < least.milli():
        return f"{head}, but request is {requests[name]}"
    if name in limits and limits[name].milli() < least.milli():
        return f"{head}, but limit is {limits[name]}"
    return ""


def at_most(kind: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"maximum {name} usage per {kind} is {most}"
    if name not in limits:
        return f"{head}.  No limit is specified"
    if limits[name].milli() > most.milli():
        return f"{head}, but limit is {limits[name]}"
    if name in requests and requests[name].milli() > most.milli():
        return f"{head}, but request is {requests[name]}"
    return ""


def at_most_asked(kind: str, name: str, most: Quantity, requests: Amounts) -> str:
    """For what has no limits but only requests."""
    head = f"maximum {name} usage per {kind} is {most}"
    if name not in requests:
        return f"{head}.  No request is specified"
    return f"{head}, but request is {requests[name]}" if requests[name].milli() > most.milli() else ""


def in_ratio(kind: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"{name} max limit to request ratio per {kind} is {most}"
    if name not in requests or not requests[name].milli():
        return f"{head}, but no request is specified or request is 0"
    if name not in limits or not limits[name].milli():
        return f"{head}, but no limit is specified or limit is 0"
    ratio = limits[name].milli() / requests[name].milli()
    return f"{head}, but provided ratio is {ratio:f}" if ratio * 1000 > most.milli() else ""
