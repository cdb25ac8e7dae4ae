"""Mirrored Endpoints on a real API server: steersman and kube-controller-manager write the same EndpointSlices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from steersman.api.kinds.services import ENDPOINTS, ENDPOINTSLICES, SERVICES

Document = dict[str, Any]
PATIENCE = 75.0
SERVICE_NAME = "kubernetes.io/service-name"


def service(name: str, selector: Document | None = None, **spec: Any) -> Document:
    spec = {"ports": [{"port": 80}], **({"selector": selector} if selector else {}), **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def endpoints(name: str, *subsets: Document, **meta: Any) -> Document:
    metadata = {"name": name, **meta}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": list(subsets)}


def subset(*ips: str, ports: tuple[Document, ...] = (), not_ready: tuple[str, ...] = ()) -> Document:
    return {
        "addresses": [{"ip": ip} for ip in ips],
        "notReadyAddresses": [{"ip": ip} for ip in not_ready],
        "ports": list(ports),
    }


HTTP: Document = {"name": "http", "port": 80}
DNS = {"name": "dns", "port": 53, "protocol": "UDP"}
HTTP2 = {"name": "http2", "port": 81, "appProtocol": "kubernetes.io/h2c"}
ANNOTATIONS = {
    "kept": "yes",
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
    "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z",
}
DETAILED: Document = {
    "addresses": [
        {
            "ip": "10.9.0.1",
            "hostname": "one",
            "nodeName": "node-7",
            "targetRef": {"kind": "Pod", "name": "one", "uid": "u-1", "resourceVersion": "12"},
        }
    ],
    "ports": [HTTP],
}
ALL = (
    endpoints("plain", subset("10.9.0.1", "10.9.0.2", ports=(HTTP,), not_ready=("10.9.0.3",))),
    endpoints("ports", subset("10.9.0.1", ports=(HTTP, DNS, HTTP2)), subset("10.9.0.2", ports=(HTTP,))),
    endpoints("dual", subset("10.9.0.1", "2001:db8::1", ports=(HTTP,))),
    endpoints("portless", subset("10.9.0.1")),
    endpoints("detailed", DETAILED, labels={"team": "blue"}, annotations=ANNOTATIONS),
    endpoints("many", subset(*(f"10.9.1.{number}" for number in range(1, 8)), ports=(HTTP,))),
    endpoints("selected", subset("10.9.0.1", ports=(HTTP,))),
    endpoints(
        "skipped",
        subset("10.9.0.1", ports=(HTTP,)),
        labels={"endpointslice.kubernetes.io/skip-mirror": "true"},
    ),
    endpoints("serviceless", subset("10.9.0.1", ports=(HTTP,))),
    endpoints(
        "lock",
        subset("10.9.0.1", ports=(HTTP,)),
        annotations={"control-plane.alpha.kubernetes.io/leader": "{}"},
    ),
    endpoints("empty"),
)
MIRRORED = {"plain": 1, "ports": 2, "dual": 2, "portless": 1, "detailed": 1, "many": 1}


def by_service(items: Iterable[Document]) -> dict[str, list[Document]]:
    """The mirrored slices by the name of their Endpoints, without names."""
    found: dict[str, list[Document]] = {}
    for one in items:
        meta = one["metadata"]
        for reference in meta.get("ownerReferences", ()):
            reference.pop("uid", None)
        kept = {key: meta[key] for key in ("labels", "annotations", "ownerReferences") if key in meta}
        # Endpoints are a set; the reference manager writes them in any order.
        body: Document = {"endpoints": sorted(one.get("endpoints") or (), key=repr), "meta": kept}
        body |= {key: one.get(key) for key in ("addressType", "ports")}
        found.setdefault(meta["labels"][SERVICE_NAME], []).append(body)
    return {name: sorted(found[name], key=repr) for name in sorted(found)}


async def until(stage: Any, met: Callable[[dict[str, list[Document]]], bool]) -> dict[str, list[Document]]:
    """The slices, once they are as expected."""
    found: dict[str, list[Document]] = {}
    kind = ENDPOINTSLICES.untyped
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                page = await stage.api.list(kind, stage.namespace)
                found = by_service(page.items)
                if met(found):
                    return found
                async for _ in stage.api.watch(kind, stage.namespace, resource_version=page.resource_version):
                    break
    except TimeoutError:
        raise AssertionError(f"{stage.binary}: not in {PATIENCE:g} s; {found}") from None


def counted(expected: dict[str, int]) -> Callable[[dict[str, list[Document]]], bool]:
    return lambda found: {name: len(each) for name, each in found.items()} == expected


async def before(stage: Any) -> None:
    names = [one["metadata"]["name"] for one in ALL if one["metadata"]["name"] != "serviceless"]
    await stage.create(SERVICES, *(service(n, {"app": "x"} if n == "selected" else None) for n in names))
    await stage.create(ENDPOINTS, *ALL)


async def tell(stage: Any) -> Document:
    begun = await until(stage, counted(MIRRORED))
    await stage.told("TooManyAddressesToMirror", "many")
    # Addresses, ports, labels and annotations change; Services gain and lose a selector; Endpoints go.
    await stage.patch(ENDPOINTS, "plain", {"subsets": [subset("10.9.0.2", "10.9.0.4", ports=(HTTP,))]})
    await stage.patch(ENDPOINTS, "ports", {"subsets": [subset("10.9.0.1", ports=(DNS,))]})
    await stage.patch(ENDPOINTS, "dual", {"subsets": [subset("2001:db8::2", ports=(HTTP,))]})
    meta = {"labels": {"team": "green"}, "annotations": {"kept": None, "more": "1"}}
    await stage.patch(ENDPOINTS, "detailed", {"metadata": meta})
    await stage.patch(SERVICES, "portless", {"spec": {"selector": {"app": "x"}}})
    await stage.patch(SERVICES, "selected", {"spec": {"selector": None}})
    await stage.api.delete(ENDPOINTS, stage.namespace, "many")
    expected = {"plain": 1, "ports": 1, "dual": 1, "detailed": 1, "selected": 1}

    def changed(found: dict[str, list[Document]]) -> bool:
        return (
            counted(expected)(found)
            and "10.9.0.4" in str(found["plain"])
            and "dns" in str(found["ports"])
            and "2001:db8::2" in str(found["dual"])
            and "green" in str(found["detailed"])
        )

    ended = await until(stage, changed)
    await stage.quiet()
    return {"begun": begun, "ended": ended}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        "mirrors",
        before=before,
        controllers=("endpointslice-mirroring-controller",),
        kinds=(ENDPOINTS,),
        flags=("--mirroring-max-endpoints-per-subset=5",),
    )
    return found


def test_slices_have_what_their_endpoints_have(ends: dict[str, dict[str, Any]]) -> None:
    (detailed,) = ends["steersman"]["begun"]["detailed"]
    assert detailed["meta"]["annotations"] == {"kept": "yes"}
    assert detailed["meta"]["labels"]["team"] == "blue"
    (many,) = ends["steersman"]["begun"]["many"]
    assert len(many["endpoints"]) == 5


def announced(end: dict[str, Any]) -> list[Document]:
    """The events of the controller; the API server has some of its own."""
    return [one for one in end["events"] if one["source"] == "endpoint-slice-mirroring-controller"]


@pytest.mark.parametrize("what", ["begun", "ended", announced])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str | Callable[..., Any]
) -> None:
    alike(ends, what)
