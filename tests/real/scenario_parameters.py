"""Chapters of the scenario about the parameters of queries: flags and numbers in odd spellings, versions of collections that are deleted,
and values that are equal in Python and differ in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.real.scenario import (
    APPLY,
    CMS,
    CRDS,
    DEPLOYMENTS,
    JSONPATCH,
    PODS,
    Ask,
    ask,
    cm,
    delete,
    deployment,
    doc,
    get,
    here,
    patch,
    pod,
    post,
    put,
)
from tests.real.scenario_values import OPEN, definition
from tests.real.scenario_writes import STRING, obj

BOOLEANS = ("1", "t", "tRuE", "0", "f", "fAlSe", "x", "", "2", "%20")
INTEGERS = ("", "0", "+1", "-1", "01", "1.0", "0x1", "x", "99999999999999999999", "9223372036854775807")


def spelled(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What each spelling is called, and how it is written."""
    for text in texts:
        yield repr(text.replace("%20", " ")), text


def _flags() -> Iterator[Ask]:
    yield post("config map", CMS, cm("a"), keep={"now": "metadata.resourceVersion"})
    one = "fieldSelector=metadata.name%3Da"
    for title, text in spelled(BOOLEANS):
        yield get(f"watch={title}", f"{CMS}?watch={text}&timeoutSeconds=9&{one}", lines=1)
        yield get(f"sendInitialEvents={title} of a list", f"{CMS}?sendInitialEvents={text}")
        yield get(f"allowWatchBookmarks={title} of a list", f"{CMS}?allowWatchBookmarks={text}&{one}")
        applied = f"{CMS}/a?fieldManager=me&dryRun=All&force={text}"
        yield patch(f"force={title} of an apply", applied, cm("a", data={"a": "b"}), APPLY)
        yield patch(f"force={title} of a merge", f"{CMS}/a?dryRun=All&force={text}", {"data": {"a": "b"}})
        yield delete(f"orphanDependents={title}", f"{CMS}/a?dryRun=All&orphanDependents={text}")
        both = f"propagationPolicy=Orphan&orphanDependents={text}"
        yield delete(f"orphanDependents={title} and a policy", f"{CMS}/a?dryRun=All&{both}")
        yield post(f"dryRun={title}", f"{CMS}?dryRun={text}", cm("", metadata={"generateName": "gen-"}))
    for text in ("1", "0", "x"):
        watched = f"{CMS}?watch=1&timeoutSeconds=9&resourceVersion=<<now>>&{one}"
        initial = (
            f"{watched}&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&sendInitialEvents={text}"
        )
        yield get(f"sendInitialEvents={text!r}", initial, lines=1 if text != "0" else 0, head=text == "0")


def _numbers() -> Iterator[Ask]:
    yield post("config map", CMS, cm("a"))
    yield post("pod", PODS, pod("p"))
    for title, text in spelled(INTEGERS):
        yield get(f"limit={title}", f"{CMS}?limit={text}")
        yield get(f"timeoutSeconds={title} of a list", f"{CMS}?timeoutSeconds={text}")
        yield delete(f"gracePeriodSeconds={title}", f"{PODS}/p?dryRun=All&gracePeriodSeconds={text}")
        yield delete(f"limit={title} of a deletion", f"{CMS}?dryRun=All&limit={text}")
        yield get(f"resourceVersion={title}", f"{CMS}/a?resourceVersion={text}")
    yield get("limit='' of a watch", f"{CMS}?watch=1&timeoutSeconds=1&limit=")
    yield get("timeoutSeconds='' of a watch", f"{CMS}?watch=1&timeoutSeconds=")
    for text in ("", "1.0", "x", "%201", "1s", "-1s", "0"):
        yield get(f"timeout={text!r}", f"{CMS}?timeout={text}")
    yield get("an odd timeout of somebody unknown", f"{CMS}?timeout=x", user="")
    yield get("an odd timeout of a watch", f"{CMS}?watch=1&timeoutSeconds=1&timeout=x&labelSelector=none")
    yield get("an odd timeout of no resource", "/healthz?timeout=x")


def _twice() -> Iterator[Ask]:
    yield post("config map", CMS, cm("a"), head=True)
    yield get("watch=0&watch=1", f"{CMS}?watch=0&watch=1")
    yield get("limit=1&limit=x", f"{CMS}?limit=1&limit=x")
    yield get("limit=x&limit=1", f"{CMS}?limit=x&limit=1")
    yield get("an unknown parameter", f"{CMS}?foo=bar")
    yield get("another case", f"{CMS}?Watch=1&Limit=x")
    yield post("dryRun=All&dryRun=All", f"{CMS}?dryRun=All&dryRun=All", cm("b"))
    yield post("dryRun=All&dryRun=x", f"{CMS}?dryRun=All&dryRun=x", cm("b"))
    yield post("dryRun=all", f"{CMS}?dryRun=all", cm("b"))
    yield post("dryRun=All,All", f"{CMS}?dryRun=All,All", cm("b"))
    for text in ("", "strict", "Strict", "Ignore", "Warn", "x", "Strict&fieldValidation=Ignore"):
        yield post(
            f"fieldValidation={text}", f"{CMS}?dryRun=All&fieldValidation={text}", {**cm("b"), "foo": 1}
        )
    for text in ("", "x", "foreground", "Foreground", "Background", "Orphan", "nil"):
        yield delete(f"propagationPolicy={text}", f"{CMS}/a?dryRun=All&propagationPolicy={text}")
        yield delete(
            f"propagationPolicy={text} of a collection", f"{CMS}?dryRun=All&propagationPolicy={text}"
        )
    for field, values in {
        "gracePeriodSeconds": ("1", 1.5, -1, 2**70, None, True),
        "orphanDependents": ("true", 1, None, False),
        "dryRun": ("All", ["all"], [], None, [1], ["All", "All"]),
        "propagationPolicy": (1, "", "x", None),
        "preconditions": (
            {"uid": "x"},
            {"uid": 1},
            {"resourceVersion": "x"},
            {"resourceVersion": "1"},
            [],
            None,
            {"foo": 1},
            {"uid": ""},
            {"resourceVersion": ""},
        ),
        "ignoreStoreReadErrorWithClusterBreakingPotential": (True, False, "x", None),
        "foo": (1,),
        "kind": ("DeleteOptions", "ConfigMap", ""),
        "apiVersion": ("v1", "v2", "meta.k8s.io/v1", "apps/v1", "x/y/z", ""),
    }.items():
        for value in values:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"], field: value}
            yield delete(f"{field}: {value!r}", f"{CMS}/a", body)
            yield post(f"again after {field}: {value!r}", CMS, cm("a"), head=True)
    for field, value in {"gracePeriodSeconds": "x", "limit": "x", "resourceVersion": "1"}.items():
        body = {"dryRun": ["All"]}
        yield delete(f"{field}={value} with a body", f"{CMS}/a?{field}={value}", body)
        yield delete(f"{field}={value} of a collection with a body", f"{CMS}?{field}={value}", body)


def _collections() -> Iterator[Ask]:
    yield post("definition", CRDS, definition("Gone", obj({"spec": obj({"a": STRING})})), head=True)
    gone = here("gones", "values.test")
    yield get("it is served", gone, until=200, head=True)
    for kind, path, make in (
        ("config maps", CMS, cm),
        ("custom", gone, lambda name, **more: doc("values.test/v1", "Gone", name, **more)),
    ):
        for name in "abc":
            yield post(f"{kind}: {name}", path, make(name, metadata={"labels": {"a": name}}), head=True)
        yield get(f"{kind}: as it was", path, keep={"old": "metadata.resourceVersion"})
        yield delete(f"{kind}: b goes", f"{path}/b", head=True)
        yield patch(f"{kind}: c is changed", f"{path}/c", {"metadata": {"labels": {"a": "x"}}}, head=True)
        yield post(f"{kind}: d comes", path, make("d", metadata={"labels": {"a": "d"}}), head=True)
        yield get(f"{kind}: now", path, keep={"now": "metadata.resourceVersion"})
        for title, query in {
            "of the future": "resourceVersion=999999999",
            "of the future, exactly": "resourceVersion=999999999&resourceVersionMatch=Exact",
            "that is text": "resourceVersion=x",
            "that is negative": "resourceVersion=-1",
            "0, exactly": "resourceVersion=0&resourceVersionMatch=Exact",
            "of no match": "resourceVersion=<<old>>&resourceVersionMatch=x",
            "with a match alone": "resourceVersionMatch=Exact",
            "with initial events": "sendInitialEvents=true",
            "and watch": "watch=1",
            "and watch with a match": "watch=1&resourceVersionMatch=NotOlderThan",
            "and watch at 0": "watch=1&resourceVersion=0",
            "0": "resourceVersion=0",
            "0 with a limit": "resourceVersion=0&limit=1",
            "old": "resourceVersion=<<old>>",
            "old, not older": "resourceVersion=<<old>>&resourceVersionMatch=NotOlderThan",
            "old, exactly": "resourceVersion=<<old>>&resourceVersionMatch=Exact",
            "old, with a limit": "resourceVersion=<<old>>&limit=2",
            "old, exactly, with a limit": "resourceVersion=<<old>>&resourceVersionMatch=Exact&limit=2",
            "old, by label": "resourceVersion=<<old>>&resourceVersionMatch=Exact&labelSelector=a%3Dc",
            "old, by field": "resourceVersion=<<old>>&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Db",
            "now, exactly": "resourceVersion=<<now>>&resourceVersionMatch=Exact",
        }.items():
            yield delete(f"{kind}: {title}, rehearsed", f"{path}?dryRun=All&{query}")
        # With a body, the version in the query is that of the list, and not a precondition.
        for title, query in {
            "old": "resourceVersion=<<old>>",
            "old, exactly": "resourceVersion=<<old>>&resourceVersionMatch=Exact",
            "old, not older": "resourceVersion=<<old>>&resourceVersionMatch=NotOlderThan",
            "old, by label": "resourceVersion=<<old>>&labelSelector=a%3Dc",
            "0": "resourceVersion=0",
        }.items():
            yield delete(f"{kind}: {title}, with a body", f"{path}?{query}", {"dryRun": ["All"]})
        yield delete(f"{kind}: old, by label", f"{path}?resourceVersion=<<old>>&labelSelector=a%3Dc")
        yield get(f"{kind}: after old, by label", path)
        yield delete(
            f"{kind}: old, exactly, by label",
            f"{path}?resourceVersion=<<old>>&resourceVersionMatch=Exact&labelSelector=a%3Dc",
        )
        yield get(f"{kind}: after old, exactly, by label", path)
        yield delete(f"{kind}: old", f"{path}?resourceVersion=<<old>>")
        yield get(f"{kind}: after old", path)
        for name in "efg":
            yield post(
                f"{kind}: {name}",
                path,
                make(name),
                head=True,
                keep={f"version{name}": "metadata.resourceVersion"},
            )
        one = {"preconditions": {"resourceVersion": "<<versionf>>"}}
        yield delete(f"{kind}: those of a version", path, one, head=True)
        yield get(f"{kind}: after those of a version", path, head=True)
        yield ask("", "COMPACT", "")
        yield delete(f"{kind}: too old", f"{path}?resourceVersion=<<old>>&resourceVersionMatch=Exact")
        yield delete(f"{kind}: too old with a limit", f"{path}?resourceVersion=<<old>>&limit=1")
        yield delete(
            f"{kind}: too old, not older", f"{path}?resourceVersion=<<old>>&resourceVersionMatch=NotOlderThan"
        )
        yield get(f"{kind}: in the end", path)


PAIRS: Mapping[str, tuple[Any, Any]] = {
    "1 to true": (1, True),
    "0 to false": (0, False),
    "true to 1": (True, 1),
    "1.5 to 1.5": (1.5, 1.5),
    "an empty text to null": ("", None),
    "[1] to [true]": ([1], [True]),
    "{a: 1} to {a: true}": ({"a": 1}, {"a": True}),
    "a list to an object": ([], {}),
    "[{a: 1}] to [{a: true}]": ([{"a": 1}], [{"a": True}]),
    "1 to '1'": (1, "1"),
    "null to false": (None, False),
}


def _types() -> Iterator[Ask]:
    schema = obj({"spec": {"type": "object", OPEN: True}, "port": {"x-kubernetes-int-or-string": True}})
    schema["properties"]["number"] = {"type": "number"}
    schema["properties"]["atomic"] = {"type": "object", OPEN: True, "x-kubernetes-map-type": "atomic"}
    schema["properties"]["list"] = {"type": "array", "items": {OPEN: True}}
    schema["properties"]["set"] = {
        "type": "array",
        "items": {"type": "number"},
        "x-kubernetes-list-type": "set",
    }
    yield post("definition", CRDS, definition("Open", schema), head=True)
    opens = here("opens", "values.test")
    yield get("it is served", opens, until=200, head=True)

    def made(name: str, **more: Any) -> dict[str, Any]:
        return doc("values.test/v1", "Open", name, **more)

    for number, (title, (one, other)) in enumerate(PAIRS.items()):
        name = f"o{number}"
        path = f"{opens}/{name}"
        yield post(f"{title}: create", opens, made(name, spec={"x": one, "y": "z"}), head=True)
        yield patch(
            f"{title}: apply of another",
            f"{path}?fieldManager=me&dryRun=All",
            made(name, spec={"x": other}),
            APPLY,
        )
        yield patch(
            f"{title}: apply by force",
            f"{path}?fieldManager=me&force=true",
            made(name, spec={"x": other}),
            APPLY,
        )
        yield patch(f"{title}: apply back", f"{path}?fieldManager=me", made(name, spec={"x": one}), APPLY)
        yield patch(f"{title}: merge", f"{path}?fieldManager=you", {"spec": {"x": other}})
        yield patch(
            f"{title}: JSON patch",
            f"{path}?fieldManager=her",
            [{"op": "replace", "path": "/spec/x", "value": one}],
            JSONPATCH,
        )
        yield patch(
            f"{title}: JSON patch with a test",
            f"{path}?fieldManager=her",
            [{"op": "test", "path": "/spec/x", "value": other}],
            JSONPATCH,
        )
        yield put(f"{title}: put", f"{path}?fieldManager=him", made(name, spec={"x": other, "y": "z"}))
        yield put(
            f"{title}: put the same", f"{path}?fieldManager=nobody", made(name, spec={"x": other, "y": "z"})
        )
        for field in ("atomic", "list", "set"):
            values = [{"x": one}, {"x": other}] if field == "atomic" else [[one], [other]]
            for place, value in enumerate(values):
                yield patch(
                    f"{title}: apply to {field} {place}",
                    f"{path}?fieldManager=f{place}",
                    made(name, **{field: value}),
                    APPLY,
                )
    yield post("number", opens, made("n", number=1, port=80))
    changes: Mapping[str, dict[str, Any]] = {
        "true": {"number": True},
        "'80'": {"port": "80"},
        "port true": {"port": True},
    }
    for title, change in changes.items():
        yield patch(
            f"number: apply {title}", f"{opens}/n?fieldManager=me&dryRun=All", made("n", **change), APPLY
        )
        yield patch(f"number: merge {title}", f"{opens}/n?fieldManager=me&dryRun=All", change)
    changes = {"1.0": {"number": 1.0}, "2.0": {"spec": {"x": 2.0}, "set": [1, 2.0]}}
    for title, change in changes.items():
        applied = made("n", **change)
        yield patch(f"number: apply {title}", f"{opens}/n?fieldManager=me&dryRun=All", applied, APPLY)
    yield post("deployment", DEPLOYMENTS, deployment("d", replicas=1, paused=True), head=True)
    for title, spec in {
        "replicas true": {"replicas": True},
        "replicas 1.0": {"replicas": 1.0},
        "paused 1": {"paused": 1},
        "surge true": {"strategy": {"rollingUpdate": {"maxSurge": True}}},
        "surge 1.0": {"strategy": {"rollingUpdate": {"maxSurge": 1.0}}},
    }.items():
        applied = doc("apps/v1", "Deployment", "d", spec=spec)
        yield patch(f"deployment: apply {title}", f"{DEPLOYMENTS}/d?fieldManager=me", applied, APPLY)
        yield patch(f"deployment: merge {title}", f"{DEPLOYMENTS}/d?fieldManager=me", {"spec": spec})
    revision = doc("apps/v1", "ControllerRevision", "r", revision=1, data={"x": 1, "y": True})
    revisions = here("controllerrevisions", "apps")
    yield post("revision", revisions, revision)
    for title, data in {
        "the same": {"x": 1, "y": True},
        "a flag": {"x": True, "y": True},
        "a number": {"x": 1, "y": 1},
        "a fraction": {"x": 1.0, "y": True},
    }.items():
        yield put(f"revision: put {title}", f"{revisions}/r?dryRun=All", {**revision, "data": data})
        yield patch(
            f"revision: apply {title}",
            f"{revisions}/r?dryRun=All&fieldManager=me",
            {**revision, "data": data},
            APPLY,
        )


CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "flags": tuple(_flags()),
    "numbers": tuple(_numbers()),
    "options": tuple(_twice()),
    "collections": tuple(_collections()),
    "types": tuple(_types()),
}
