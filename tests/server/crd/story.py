"""The story of custom resources, told through any `Api`: definitions, objects, and what becomes of them.

``story.txt`` is what a real kube-apiserver answered.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from steersman.api.errors import NotFound
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType

GOLDEN = Path(__file__).with_name("story.txt")

JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def _beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"crd_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases, telling = _beside("cases"), _beside("telling")
CRDS, GROUP, Teller = telling.CRDS, telling.GROUP, telling.Teller
S, I = cases.S, cases.I


def kind_of(definition: dict[str, Any], version: str = "v1") -> Kind[dict[str, Any]]:
    spec = definition["spec"]
    names = spec["names"]
    return Kind(spec["group"], version, names["kind"], names["plural"], spec["scope"] == "Namespaced", dict)


def kind(name: str, version: str = "v1") -> Kind[dict[str, Any]]:
    return kind_of(cases.GOOD[name], version)


def body(kind: Kind[dict[str, Any]], name: str, spec: Any = None, **more: Any) -> dict[str, Any]:
    made = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}, **more}
    return made if spec is None else {**made, "spec": spec}


# -- chapters ---------------------------------------------------------------------------------


async def refusing(t: Any) -> None:
    for title, definition in cases.BAD.items():
        await t.tell(title, t.api.create(CRDS, "", definition))


async def objects(t: Any) -> None:
    async def one(name: str, given: dict[str, Any]) -> str:
        of = kind(name)
        made = {"apiVersion": of.api_version, "kind": of.name, **given}
        told = await t.told(t.api.create(of, t.namespace if of.namespaced else "", made))
        said = {field: value for field, value in given.items() if field != "metadata"}
        return f"{name} {said}: {told}"

    t.lines += await asyncio.gather(*(one(*each) for each in cases.objects()))


async def updating(t: Any) -> None:
    api, ns, k = t.api, t.namespace, kind("statuses")
    given = body(k, "a", {"replicas": 1, "x": "y"}, status={"replicas": 5})
    await t.tell("create", api.create(k, ns, given))
    await t.tell("again", api.create(k, ns, given))
    live = await api.get(k, ns, "a")
    await t.tell("without a version", api.update(k, ns, "a", body(k, "a", {"x": "z"})))
    old = {**body(k, "a", {"x": "z"}), "metadata": {"name": "a", "resourceVersion": "1"}}
    await t.tell("with an old version", api.update(k, ns, "a", old))
    await t.tell("nothing new", api.update(k, ns, "a", live))
    live["spec"]["x"], live["status"] = "z", {"replicas": 7}
    await t.tell("spec", api.update(k, ns, "a", live))
    live = await api.get(k, ns, "a")
    live["metadata"]["labels"] = {"l": "1"}
    await t.tell("labels", api.update(k, ns, "a", live))
    live = await api.get(k, ns, "a")
    live["metadata"]["labels"] = {"m": "1"}
    live["metadata"]["annotations"] = {"a": "b"}
    live["spec"]["x"], live["status"] = "nope", {"replicas": 3, "phase": "Up", "junk": 1}
    await t.tell("status", api.update_status(k, ns, "a", live))
    await t.tell("read", api.get(k, ns, "a"))
    bare = body(k, "a", status={"replicas": 1})
    await t.tell("status without a version", api.update_status(k, ns, "a", bare))
    await t.tell("another name", api.update(k, ns, "a", body(k, "zz", {})))
    await t.tell("nobody", api.get(k, ns, "nobody"))


async def patching(t: Any) -> None:
    api, ns, k = t.api, t.namespace, kind("statuses")
    await api.create(k, ns, body(k, "a", {"replicas": 1, "x": "y"}))

    async def patch(title: str, patch: Any, **more: Any) -> None:
        await t.tell(title, api.patch(k, ns, "a", patch, **more))

    await patch("merge", {"spec": {"x": None, "junk": 1}})
    await patch("status by the way", {"status": {"replicas": 99}})
    await patch("status", {"status": {"phase": "Down"}, "spec": {"x": "ignored"}}, subresource="status")
    await patch("a bad status", {"status": {"phase": "Sideways"}}, subresource="status")
    await patch("a status that is none", {"status": "x"}, subresource="status")
    await patch("no status", {"status": None}, subresource="status")
    await patch("json", [{"op": "add", "path": "/spec/x", "value": "j"}], content_type=JSON)
    await patch("json of nothing", [{"op": "remove", "path": "/spec/nothing"}], content_type=JSON)
    await patch("json test", [{"op": "test", "path": "/spec/x", "value": "no"}], content_type=JSON)
    await patch("strategic", {"spec": {"x": "s"}}, content_type=STRATEGIC)
    await patch("a bad spec", {"spec": {"replicas": "x"}})
    await patch("a bad label", {"metadata": {"labels": {"-": "x"}}})
    await patch("no label", {"metadata": {"labels": {"a": None}}})
    await patch("another name", {"metadata": {"name": "b"}})
    await patch("an old version", {"metadata": {"resourceVersion": "1"}, "spec": {"x": "q"}})
    await patch("another uid", {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}})
    await t.tell("nobody", api.patch(k, ns, "nobody", {"spec": {}}))


async def creating(t: Any) -> None:
    api, ns, k = t.api, t.namespace, kind("statuses")
    await t.tell("another kind", api.create(k, ns, {**body(k, "a"), "kind": "Other"}))
    await t.tell("another version", api.create(k, ns, {**body(k, "a"), "apiVersion": "crd.test/v9"}))
    await t.tell("a bad name", api.create(k, ns, body(k, "Bad_Name", {"replicas": "x"})))
    await t.tell("nowhere", api.create(k, "nowhere", body(k, "a", {})))
    for title, meta in {
        "a name of the server's": {"generateName": "gen-"},
        "no name": {},
        "with a version": {"name": "r", "resourceVersion": "5"},
        "what only the server says": {
            "name": "s",
            "uid": "x",
            "generation": 7,
            "deletionTimestamp": "2020-01-01T00:00:00Z",
            "creationTimestamp": None,
            "unknown": 1,
        },
    }.items():
        await t.tell(title, api.create(k, ns, {**body(k, ""), "metadata": meta}))
    p = kind("plain")
    await t.tell("plain", api.create(p, ns, body(p, "p", {"x": "1"}, status={"y": "2"})))
    await t.tell("its status", api.patch(p, ns, "p", {"status": {"y": "3"}}))
    await t.tell("no status", api.patch(p, ns, "p", {"status": {"y": "4"}}, subresource="status"))
    await t.tell("no scale", api.subresource(p, ns, "p", "scale", verb="get"))


async def scaling(t: Any) -> None:
    api, ns, k = t.api, t.namespace, kind("statuses")
    await api.create(k, ns, body(k, "s", {"replicas": 2}))
    await api.create(k, ns, body(k, "e", {}))
    await api.patch(k, ns, "s", {"status": {"replicas": 1, "selector": "a=b"}}, subresource="status")
    scale = await api.subresource(k, ns, "s", "scale", verb="get")
    await t.tell("read", api.subresource(k, ns, "s", "scale", verb="get"))
    await t.tell("read nothing", api.subresource(k, ns, "e", "scale", verb="get"))
    scale["spec"]["replicas"] = 4
    await t.tell("update", api.subresource(k, ns, "s", "scale", scale, verb="update"))
    await t.tell("update an old one", api.subresource(k, ns, "s", "scale", scale, verb="update"))
    await t.tell("patch", api.patch(k, ns, "s", {"spec": {"replicas": 6}}, subresource="scale"))
    await t.tell("below zero", api.patch(k, ns, "s", {"spec": {"replicas": -6}}, subresource="scale"))
    await t.tell("from nothing", api.patch(k, ns, "e", {"spec": {"replicas": 3}}, subresource="scale"))
    await t.tell("the object", api.get(k, ns, "s"))
    await t.tell("nobody", api.subresource(k, ns, "nobody", "scale", verb="get"))


async def selecting(t: Any) -> None:
    api, ns, k = t.api, t.namespace, kind("selected")
    for number, color in enumerate(("red", "blue", "red")):
        await api.create(k, ns, body(k, f"o{number}", {"color": color, "size": number, "on": number == 1}))
    await api.create(k, ns, body(k, "none"))

    async def names(of: Kind[dict[str, Any]], fields: str) -> list[str]:
        return [each["metadata"]["name"] for each in (await api.list(of, ns, field_selector=fields)).items]

    for fields in (
        "spec.color=red",
        "spec.color!=red",
        "spec.size=1",
        "spec.on=true",
        "spec.color=",
        "spec.color=red,spec.size=2",
        "metadata.name=o1",
        "spec.other=x",
    ):
        await t.tell(fields, names(k, fields))
    await t.tell("of a plain kind", names(kind("plain"), "spec.x=1"))


def _ratchet(length: int, item: int, *, sets: bool = False, **more: Any) -> dict[str, Any]:
    entry = {**cases.fields(k=S, v={**S, "maxLength": item}), "required": ["k"]}
    schema: dict[str, Any] = cases.spec(
        a={**S, "maxLength": length},
        n=I,
        l=cases.map_of(entry, "k"),
        at=cases.items({**S, "maxLength": item}),
        st=cases.set_of(S) if sets else cases.items(S),
        **more,
    )
    return schema


def _with_schema(schema: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(definition: dict[str, Any]) -> None:
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema

    return change


async def tightening(t: Any) -> None:
    api, ns = t.api, t.namespace
    definition = cases.define("ratchets", _ratchet(9, 9))
    k = kind_of(definition)
    await t.tell("define", api.create(CRDS, "", definition))
    await telling.when(api, k.resource, telling.is_("Established"))
    lists = {"l": [{"k": "x", "v": "long"}, {"k": "y", "v": "s"}], "at": ["long", "s"], "st": ["a", "a"]}
    await t.tell("create", api.create(k, ns, body(k, "r", {"a": "longish", "n": 1, **lists})))
    tight = _ratchet(3, 2, sets=True, fresh={**S, "default": "new"})
    await telling.redefine(t, "tighten", k, _with_schema(tight))
    await t.tell("read", api.get(k, ns, "r"))

    def put(path: str, value: Any) -> Awaitable[Any]:
        patch = [{"op": "replace", "path": path, "value": value}]
        answer: Awaitable[Any] = api.patch(k, ns, "r", patch, content_type=JSON)
        return answer

    await t.tell("another field", put("/spec/n", 2))
    await t.tell("the same field", put("/spec/a", "another"))
    await t.tell("another item", put("/spec/l/1/v", "t"))
    await t.tell("the same item", put("/spec/l/0/v", "longer"))
    await t.tell("an item of an atomic list", put("/spec/at/1", "t"))
    await t.tell("a set that was none", put("/spec/st", ["a", "a", "b"]))
    await t.tell("a new object", api.create(k, ns, body(k, "r2", {"a": "longish"})))
    await telling.redefine(t, "narrow", k, _with_schema(cases.spec(n=I)))
    await t.tell("read less", api.get(k, ns, "r"))
    await telling.redefine(t, "widen", k, _with_schema(cases.spec(n=I, a=S)))
    await t.tell("read more", api.get(k, ns, "r"))
    await t.tell("nothing new", put("/spec/n", 2))
    names = {"kind": "Zed", "plural": "zeds"}
    other = {"spec": {"scope": "Cluster", "group": "x.y", "names": names}}
    await t.tell("what stays", api.patch(CRDS, "", k.resource, other))
    without = [{"op": "remove", "path": "/spec/versions/0/schema"}]
    await t.tell("without a schema", api.patch(CRDS, "", k.resource, without, content_type=JSON))
    await t.tell("in the end", api.get(CRDS, "", k.resource))


async def versions(t: Any) -> None:
    api, ns = t.api, t.namespace
    v1, v2, v3 = (kind("multi", version) for version in ("v1", "v2", "v3"))
    await t.tell("in v1", api.create(v1, ns, body(v1, "a", {"a": "1", "b": "B", "c": "C"})))
    await t.tell("read in v2", api.get(v2, ns, "a"))
    await t.tell("read in v3", api.get(v3, ns, "a"))
    await t.tell("in v2", api.create(v2, ns, body(v2, "z", {"a": "1", "b": "B", "c": "C"})))
    await t.tell("read in v1", api.get(v1, ns, "z"))
    await t.tell("patch in v2", api.patch(v2, ns, "a", {"spec": {"a": "2"}}))
    await t.tell("read in v1 again", api.get(v1, ns, "a"))

    async def listed(of: Kind[dict[str, Any]]) -> list[Any]:
        return [each["spec"] for each in (await api.list(of, ns)).items]

    await t.tell("list in v1", listed(v1))
    await t.tell("list in v2", listed(v2))

    def store_v2(definition: dict[str, Any]) -> None:
        for version in definition["spec"]["versions"]:
            version["storage"] = version["name"] == "v2"

    await telling.redefine(t, "store v2", v2, store_v2)
    await t.tell("still v1 in v1", api.get(v1, ns, "a"))
    await t.tell("still v1 in v2", api.get(v2, ns, "a"))
    before = await api.get(v2, ns, "z")
    await t.tell("touch", api.patch(v2, ns, "z", {}))
    after = await api.get(v2, ns, "z")
    moved = before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]
    t.lines.append(f"a touch moves it: {moved}")
    await api.patch(v2, ns, "a", {})

    async def without_v1() -> Any:
        live = await api.get(CRDS, "", v1.resource)
        live["spec"]["versions"] = [each for each in live["spec"]["versions"] if each["name"] != "v1"]
        return await api.update(CRDS, "", v1.resource, live)

    await t.tell("drop v1 too soon", without_v1())
    live = await api.get(CRDS, "", v1.resource)
    live["status"]["storedVersions"] = ["v2"]
    await t.tell("all moved", api.update_status(CRDS, "", v1.resource, live))
    await t.tell("drop v1", without_v1())
    await _until_gone(api.get, v1, ns, "a")
    await t.tell("v1 is gone", api.get(v1, ns, "a"))


async def _until_gone(get: Callable[..., Awaitable[Any]], *what: Any) -> None:
    """A server takes note of a definition's end in its own time."""
    for _ in range(10_000):
        try:
            await get(*what)
        except NotFound:
            return


async def naming(t: Any) -> None:
    api, when, is_ = t.api, telling.when, telling.is_
    schema = cases.spec(x=S)
    first, second, third = (f"{plural}.names.test" for plural in ("alphas", "betas", "gammas"))

    def define(plural: str, kind: str, **names: Any) -> dict[str, Any]:
        made: dict[str, Any] = cases.define(plural, schema, group="names.test", kind=kind, names=names)
        return made

    await t.tell("first", api.create(CRDS, "", define("alphas", "Alpha", shortNames=["al", "x"])))
    await when(api, first, is_("Established"))
    clashing = define(
        "betas", "Alpha", singular="alpha", listKind="AlphaList", shortNames=["x", "alphas", "be"]
    )
    await t.tell("second", api.create(CRDS, "", clashing))
    await when(api, second, is_("NamesAccepted", "False"))
    await t.tell("conflicts", api.get(CRDS, "", second))
    await t.tell("not served", api.list(kind_of(clashing), "default"))
    await t.tell("third", api.create(CRDS, "", define("gammas", "Gamma", shortNames=["x"])))
    await when(api, third, is_("NamesAccepted", "False"))
    await t.tell("one conflict", api.get(CRDS, "", third))
    freed = {"spec": {"names": {"shortNames": ["al"]}}}
    await t.tell("give a name away", api.patch(CRDS, "", first, freed))
    await when(api, first, lambda each: each["status"]["acceptedNames"]["shortNames"] == ["al"])
    await t.tell("given away", api.get(CRDS, "", first))
    await when(api, third, is_("Established"))
    await t.tell("taken", api.get(CRDS, "", third))
    await t.tell("end one that never was", api.delete(CRDS, "", second))
    await telling.gone(api, CRDS, "", second)
    await t.tell("ended", api.get(CRDS, "", second))


async def ending(t: Any) -> None:
    api, ns = t.api, t.namespace
    definition = cases.define("mortals", cases.spec(x=S))
    k = kind_of(definition)
    await api.create(CRDS, "", definition)
    await telling.when(api, k.resource, telling.is_("Established"))
    await api.create(k, ns, body(k, "a", {"x": "1"}))
    await api.create(k, ns, {**body(k, "f", {"x": "1"}), "metadata": {"name": "f", "finalizers": ["x.io/f"]}})
    watch = api.watch(k, ns, send_initial_events=True)
    seen = []
    async for event in watch:
        seen.append(event)
        if event.initial_end:
            break
    await t.tell("delete", api.delete(CRDS, "", k.resource))
    await telling.when(api, k.resource, telling.is_("Terminating", reason="InstanceDeletionInProgress"))
    await t.tell("terminating", api.get(CRDS, "", k.resource))
    await telling.gone(api, k, ns, "a")
    await t.tell("gone", api.get(k, ns, "a"))
    await t.tell("held", api.get(k, ns, "f"))
    await t.tell("nothing new", api.create(k, ns, body(k, "n", {})))
    await t.tell("released", api.patch(k, ns, "f", {"metadata": {"finalizers": None}}))
    await telling.gone(api, CRDS, "", k.resource)
    await t.tell("ended", api.get(CRDS, "", k.resource))
    async for event in watch:
        seen.append(event)
    told = [
        f"{event.type.value} {event.obj['metadata']['name']}"
        for event in seen
        if event.obj is not None and event.type is not EventType.BOOKMARK
    ]
    t.lines.append(f"watched: {', '.join(told)}")


CHAPTERS: tuple[Callable[[Any], Awaitable[None]], ...] = (
    refusing,
    objects,
    creating,
    updating,
    patching,
    scaling,
    selecting,
    tightening,
    versions,
    naming,
    ending,
)


async def told(api: Api) -> list[str]:
    """The whole story. Chapters do not get in each other's way, so they are told all at once."""
    book = Teller(api, "crd-book")
    for name, definition in cases.GOOD.items():
        await book.tell(f"define {name}", api.create(CRDS, "", definition))
    for definition in cases.GOOD.values():
        await telling.when(api, definition["metadata"]["name"], telling.is_("Established"))
    for name, definition in cases.GOOD.items():
        await book.tell(f"defined {name}", api.get(CRDS, "", definition["metadata"]["name"]))

    async def tell(chapter: Callable[[Any], Awaitable[None]]) -> list[str]:
        namespace = f"crd-{chapter.__name__}"
        await api.create(telling.NAMESPACES, "", {"metadata": {"name": namespace}})
        teller = Teller(api, namespace)
        await chapter(teller)
        return [f"{chapter.__name__}: {line}" for line in teller.lines]

    chapters = await asyncio.gather(*map(tell, CHAPTERS))
    return [*book.lines, *(line for lines in chapters for line in lines)]
