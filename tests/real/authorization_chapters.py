"""The chapters of the authorization matrix about resources: reads, writes and subresources."""

from __future__ import annotations

from typing import Any

from tests.real.authorization_rows import (
    APPLY,
    CLUSTER,
    ELSEWHERE,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Chapter,
    Request,
    collection,
    document,
    may,
    request,
    user,
    writes,
)

# fmt: off
# One request is one line.

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def marked(name: str) -> dict[str, Any]:
    """Metadata by which a row finds its own object."""
    return {"labels": {"app": name, "of": "<<user>>"}}


# -- configmaps: every verb and every way to ask for it ---------------------------------------

MAPS = collection("configmaps")
EVERY_MAP = collection("configmaps", namespace=CLUSTER)
WATCH = "timeoutSeconds=1"
MINE = "labelSelector=of%3D<<user>>"
NAMED = "fieldSelector=metadata.name%3D"


def config_map(name: str) -> dict[str, Any]:
    return document("v1", "ConfigMap", name, metadata=marked(name), data={"a": "1"})


READS = (
    request("GET of one", "GET", f"{MAPS}/one"),
    request("GET of another", "GET", f"{MAPS}/two"),
    request("GET of an absent object", "GET", f"{MAPS}/three"),
    request("GET of one in another namespace", "GET", f"/api/v1/namespaces/{ELSEWHERE}/configmaps/<<user>>"),
    request("GET of one with watch=1", "GET", f"{MAPS}/one?watch=1&{WATCH}"),
    request("GET of a subresource that does not exist", "GET", f"{MAPS}/one/status"),
    request("HEAD of one", "HEAD", f"{MAPS}/one"),
    request("OPTIONS of one", "OPTIONS", f"{MAPS}/one"),
    request("list", "GET", f"{MAPS}?{MINE}"),
    request("list of all namespaces", "GET", f"{EVERY_MAP}?{MINE}"),
    request("list of one name", "GET", f"{MAPS}?{NAMED}one"),
    request("list of another name", "GET", f"{MAPS}?{NAMED}two"),
    request("list of one name in all namespaces", "GET", f"{EVERY_MAP}?{MINE}&{NAMED}one"),
    request("list of all but one name", "GET", f"{MAPS}?{MINE}&fieldSelector=metadata.name!%3Done"),
    request("list of one name and its namespace", "GET", f"{MAPS}?{NAMED}one,metadata.namespace%3D<<ns>>"),
    request("list of one name with a limit that is no number", "GET", f"{MAPS}?{NAMED}one&limit=few"),
    request("list of one name with a selector that cannot be parsed", "GET", f"{MAPS}?{NAMED}one,)"),
    request("watch=1", "GET", f"{MAPS}?watch=1&{MINE}&{WATCH}"),
    request("watch=1 of all namespaces", "GET", f"{EVERY_MAP}?watch=1&{MINE}&{WATCH}"),
    request("watch=1 of one name", "GET", f"{MAPS}?watch=1&{NAMED}one&{WATCH}"),
    request("watch=1 of another name", "GET", f"{MAPS}?watch=1&{NAMED}two&{WATCH}"),
    request("watch with initial events of one name", "GET", f"{MAPS}?watch=true&{NAMED}one&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&{WATCH}"),
    request("watch by path", "GET", f"/api/v1/watch/namespaces/<<ns>>/configmaps?{MINE}&{WATCH}"),
    request("watch by path of all namespaces", "GET", f"/api/v1/watch/configmaps?{MINE}&{WATCH}"),
    request("watch by path of one", "GET", f"/api/v1/watch/namespaces/<<ns>>/configmaps/one?{WATCH}"),
    request("watch by path of another", "GET", f"/api/v1/watch/namespaces/<<ns>>/configmaps/two?{WATCH}"),
    request("watch by path of one, selecting another", "GET", f"/api/v1/watch/namespaces/<<ns>>/configmaps/one?{NAMED}two&{WATCH}"),
    request("watch by path, selecting one", "GET", f"/api/v1/watch/namespaces/<<ns>>/configmaps?{NAMED}one&{WATCH}"),
    request("POST to a watch path", "POST", "/api/v1/watch/namespaces/<<ns>>/configmaps", config_map("<<name>>")),
    request("DELETE of a watch path", "DELETE", "/api/v1/watch/namespaces/<<ns>>/configmaps/one"),
)

CONFIG_MAPS = Chapter(
    "configmaps",
    (
        *(user(verb, may(verb, "configmaps")) for verb in VERBS),
        user("every verb", may("*", "configmaps")),
        user("every verb on one name", may("*", "configmaps", only="one")),
        user("every verb on a subresource", may("*", "configmaps/status")),
        user("every verb in another namespace", may("*", "configmaps", where=ELSEWHERE)),
        user("reads in every namespace", may("get list watch", "configmaps", where=CLUSTER)),
        user("every verb on every resource", may("*", "*", "*")),
        user("no right"),
    ),
    (*READS, *writes(MAPS, config_map, {"data": {"a": "2"}}, [{"op": "replace", "path": "/data/a", "value": "2"}])),
    setting=(
        (MAPS, config_map("one")),
        (MAPS, config_map("two")),
        (collection("configmaps", namespace=ELSEWHERE), document("v1", "ConfigMap", "<<user>>", metadata=marked("one"))),
    ),
    remains=((MAPS, "data.a"),),
)


# -- leases: a PUT may create -----------------------------------------------------------------

LEASES = collection("leases", "coordination.k8s.io")


def lease(name: str) -> dict[str, Any]:
    return document("coordination.k8s.io/v1", "Lease", name, metadata=marked(name), spec={"holderIdentity": "a"})


def _may_lease(verbs: str, only: str = "") -> Any:
    return may(verbs, "leases", "coordination.k8s.io", only=only)


LEASE_WRITES = tuple(
    asked
    for asked in writes(LEASES, lease, {"spec": {"holderIdentity": "b"}}, [{"op": "replace", "path": "/spec/holderIdentity", "value": "b"}])
    if asked.method != "DELETE"
)

LEASE = Chapter(
    "leases",
    (
        user("update", _may_lease("update")),
        user("create", _may_lease("create")),
        user("update and create", _may_lease("update create")),
        user("patch", _may_lease("patch")),
        user("patch and create", _may_lease("patch create")),
        user("patch and update", _may_lease("patch update")),
        user(
            "update and patch, and create on the names of two requests",
            _may_lease("update patch"),
            _may_lease("create", "put-of-an-absent-object apply-that-creates"),
        ),
        user("update and create on another name", _may_lease("update"), _may_lease("create", "other")),
    ),
    (
        *LEASE_WRITES,
        request("PUT of an absent object with a uid", "PUT", f"{LEASES}/<<name>>", {**lease("<<name>>"), "metadata": {"name": "<<name>>", "uid": "7"}}),
        request("PUT of an absent object that is invalid", "PUT", f"{LEASES}/<<name>>", {**lease("<<name>>"), "spec": {"leaseDurationSeconds": -1}}),
        request("PUT of an absent object by another name", "PUT", f"{LEASES}/<<name>>", lease("other")),
        request("apply that creates an invalid object", "PATCH", f"{LEASES}/<<name>>?fieldManager=me", {**lease("<<name>>"), "spec": {"leaseDurationSeconds": -1}}, type_=APPLY),
    ),
    remains=((LEASES, "spec.holderIdentity"),),
)


# -- services: a PUT of the status may create -------------------------------------------------

SERVICES = collection("services")


def service(name: str) -> dict[str, Any]:
    return document("v1", "Service", name, metadata=marked(name), spec={"ports": [{"port": 80}]})


CONDITION = {"type": "Fine", "status": "True", "reason": "Well", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
STATUS = {"conditions": [CONDITION]}

SERVICE = Chapter(
    "services",
    (
        user("update and create", may("update create", "services")),
        user("update of the status", may("update", "services/status")),
        user("update of the status and create", may("update", "services/status"), may("create", "services")),
        user("update and create of the status", may("update create", "services/status")),
        user("patch of the status", may("patch", "services/status")),
        user("get and create through the proxy", may("get create", "services/proxy")),
    ),
    (
        request("PUT of an absent object", "PUT", f"{SERVICES}/<<name>>", service("<<name>>")),
        request("PUT of the status of an absent object", "PUT", f"{SERVICES}/<<name>>/status", service("<<name>>")),
        request("merge patch of the status of an absent object", "PATCH", f"{SERVICES}/<<name>>/status", {"status": STATUS}, type_=MERGE),
        request("apply of the status of an absent object", "PATCH", f"{SERVICES}/<<name>>/status?fieldManager=me", {**service("<<name>>"), "status": STATUS}, type_=APPLY),
        request("merge patch of the status", "PATCH", f"{SERVICES}/<<name>>/status", {"status": STATUS}, type_=MERGE, given=[(SERVICES, service("<<name>>"))]),
        request("GET through the proxy of an absent service", "GET", f"{SERVICES}/none/proxy/"),
        request("POST through the proxy of an absent service", "POST", f"{SERVICES}/none/proxy/path", {}),
    ),
    remains=((SERVICES, "status.conditions"),),
)


# -- events: one object in two API groups -----------------------------------------------------

EVENTS, NEW_EVENTS = collection("events"), collection("events", "events.k8s.io")


def event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "<<ns>>", "name": "p"}
    return document("v1", "Event", name, involvedObject=about, reason="Why", type="Normal")


def new_event(name: str) -> dict[str, Any]:
    more = {"action": "Do", "reportingController": "a.example/b", "reportingInstance": "c", "eventTime": "2026-01-01T00:00:00.000000Z"}
    about = {"kind": "Pod", "namespace": "<<ns>>", "name": "p"}
    return document("events.k8s.io/v1", "Event", name, regarding=about, reason="Why", type="Normal", **more)


def _event_requests() -> tuple[Request, ...]:
    asked = []
    for group, path, make in (("core", EVENTS, event), ("events.k8s.io", NEW_EVENTS, new_event)):
        one, name = f"{path}/<<name>>", "<<name>>"
        asked += [
            request(f"POST in the group {group}", "POST", path, make(name)),
            request(f"PUT that creates in the group {group}", "PUT", one, make(name)),
            request(f"apply that creates in the group {group}", "PATCH", f"{one}?fieldManager=me", make(name), type_=APPLY),
            request(f"merge patch in the group {group}", "PATCH", one, {"metadata": {"labels": {"a": "b"}}}, type_=MERGE, given=[(EVENTS, event(name))]),
            request(f"list of one name in the group {group}", "GET", f"{path}?{NAMED}one"),
        ]
    return tuple(asked)


EVENT = Chapter(
    "events",
    (
        user("writes and list in the core group", may("create update patch list", "events")),
        user("writes and list in the group events.k8s.io", may("create update patch list", "events", "events.k8s.io")),
        user("update and patch in the group events.k8s.io, and create in the core group", may("update patch", "events", "events.k8s.io"), may("create", "events")),
    ),
    _event_requests(),
    remains=((EVENTS, "metadata.labels"),),
)


# -- deployments: status and scale ------------------------------------------------------------

DEPLOYMENTS = collection("deployments", "apps")
POD_SPEC = {"containers": [{"name": "c", "image": "i"}]}


def deployment(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": POD_SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return document("apps/v1", "Deployment", name, metadata=marked(name), spec=spec)


def scale(name: str) -> dict[str, Any]:
    return document("autoscaling/v1", "Scale", name, spec={"replicas": 2})


def _parts() -> tuple[Request, ...]:
    one, given = f"{DEPLOYMENTS}/<<name>>", [(DEPLOYMENTS, deployment("<<name>>"))]
    status = {"observedGeneration": 3}
    replace = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    observed = {**deployment("<<name>>"), "status": status}
    applied = {key: value for key, value in observed.items() if key != "spec"}

    def asked(title: str, method: str, path: str, body: Any = None, type_: str = "application/json") -> Request:
        return request(title, method, path, body, type_=type_, given=given, shown="spec.replicas status.observedGeneration")

    return (
        asked("GET", "GET", one),
        asked("PUT", "PUT", one, deployment("<<name>>")),
        asked("GET of the scale", "GET", f"{one}/scale"),
        asked("PUT of the scale", "PUT", f"{one}/scale", scale("<<name>>")),
        asked("PUT of the scale, dry run", "PUT", f"{one}/scale?dryRun=All", scale("<<name>>")),
        asked("JSON patch of the scale", "PATCH", f"{one}/scale", replace, JSON_PATCH),
        asked("merge patch of the scale", "PATCH", f"{one}/scale", {"spec": {"replicas": 4}}, MERGE),
        asked("apply of the scale", "PATCH", f"{one}/scale?fieldManager=me&force=true", scale("<<name>>"), APPLY),
        asked("POST of a scale", "POST", f"{one}/scale", scale("<<name>>")),
        asked("DELETE of a scale", "DELETE", f"{one}/scale"),
        asked("GET of the status", "GET", f"{one}/status"),
        asked("PUT of the status", "PUT", f"{one}/status", observed),
        asked("PUT of the status, dry run", "PUT", f"{one}/status?dryRun=All", observed),
        asked("strategic merge patch of the status", "PATCH", f"{one}/status", {"status": status}, STRATEGIC),
        asked("apply of the status", "PATCH", f"{one}/status?fieldManager=me&force=true", applied, APPLY),
        asked("watch by path of the status", "GET", f"/apis/apps/v1/watch/namespaces/<<ns>>/deployments/<<name>>/status?{WATCH}"),
    )


DEPLOYMENT = Chapter(
    "deployments",
    (
        user("every verb on the object", may("*", "deployments", "apps")),
        user("get on the scale", may("get", "deployments/scale", "apps")),
        user("update on the scale", may("update", "deployments/scale", "apps")),
        user("patch on the scale", may("patch", "deployments/scale", "apps")),
        user("update on the status", may("update", "deployments/status", "apps")),
        user("patch on the status", may("patch", "deployments/status", "apps")),
        user("every verb on every scale", may("*", "*/scale", "apps")),
        user("get and watch on every resource", may("get watch", "*", "*")),
    ),
    _parts(),
)


# -- pods: subresources of their own ----------------------------------------------------------

PODS = collection("pods")


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    return document("v1", "Pod", name, metadata=marked(name), spec=spec)


def _pod_requests() -> tuple[Request, ...]:
    one, given = f"{PODS}/<<name>>", [(PODS, pod("<<name>>"))]
    binding = document("v1", "Binding", "<<name>>", target={"kind": "Node", "name": "n"})
    eviction = document("policy/v1", "Eviction", "<<name>>")
    dry = {**eviction, "deleteOptions": {"dryRun": ["All"]}}
    debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
    larger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}

    def asked(title: str, method: str, path: str, body: Any = None, type_: str = "application/json") -> Request:
        return request(title, method, path, body, type_=type_, given=given)

    return (
        asked("eviction", "POST", f"{one}/eviction", eviction),
        asked("eviction, dry run by query", "POST", f"{one}/eviction?dryRun=All", eviction),
        asked("eviction, dry run by its options", "POST", f"{one}/eviction", dry),
        asked("DELETE", "DELETE", one),
        asked("binding", "POST", f"{one}/binding", binding),
        asked("binding, dry run", "POST", f"{one}/binding?dryRun=All", binding),
        asked("binding as a resource", "POST", "/api/v1/namespaces/<<ns>>/bindings", binding),
        asked("strategic merge patch of the ephemeral containers", "PATCH", f"{one}/ephemeralcontainers", debug, STRATEGIC),
        asked("strategic merge patch of the resize", "PATCH", f"{one}/resize", larger, STRATEGIC),
        asked("GET of the log", "GET", f"{one}/log"),
        asked("GET of exec", "GET", f"{one}/exec?command=ls&stdout=true"),
        asked("POST of exec", "POST", f"{one}/exec?command=ls&stdout=true"),
        asked("GET of attach", "GET", f"{one}/attach?stdout=true"),
        asked("POST of attach", "POST", f"{one}/attach?stdout=true"),
        asked("GET of a port forward", "GET", f"{one}/portforward"),
        asked("POST of a port forward", "POST", f"{one}/portforward"),
        asked("DELETE of the status", "DELETE", f"{one}/status"),
        asked("merge patch of the status", "PATCH", f"{one}/status", {"status": {"message": "a"}}, MERGE),
    )


POD = Chapter(
    "pods",
    (
        user("delete on the object and its status", may("delete", "pods pods/status")),
        user("create on the eviction", may("create", "pods/eviction")),
        user("create on the binding", may("create", "pods/binding")),
        user("create on bindings", may("create", "bindings")),
        user("patch on the ephemeral containers", may("patch", "pods/ephemeralcontainers")),
        user("patch on the resize", may("patch", "pods/resize")),
        user("get on the log", may("get", "pods/log")),
        user("get on exec, attach and port forwards", may("get", "pods/exec pods/attach pods/portforward")),
        user("create on exec, attach and port forwards", may("create", "pods/exec pods/attach pods/portforward")),
        user("get and create on them", may("get create", "pods/exec pods/attach pods/portforward")),
        user("patch on the object and its status", may("patch", "pods pods/status")),
    ),
    _pod_requests(),
    setting=((collection("serviceaccounts"), {"metadata": {"name": "default"}}),),
    remains=((PODS, "spec.nodeName"),),
)


# -- namespaces: within themselves ------------------------------------------------------------

SPACES = collection("namespaces", namespace=CLUSTER)
FINALIZED = document("v1", "Namespace", "<<ns>>", spec={"finalizers": ["kubernetes"]})

NAMESPACE = Chapter(
    "namespaces",
    (
        user("get in its namespace", may("get", "namespaces")),
        user("get, list and watch in its namespace", may("get list watch", "namespaces")),
        user("get, list and watch at the cluster scope", may("get list watch", "namespaces", where=CLUSTER)),
        user("get, list and watch on its own name", may("get list watch", "namespaces", only="namespaces-3", where=CLUSTER)),
        user("get and update of finalize", may("get update", "namespaces/finalize")),
        user("update and patch of the status", may("update patch", "namespaces/status")),
        user("patch at the cluster scope", may("patch", "namespaces", where=CLUSTER)),
        user("patch and create at the cluster scope", may("patch create", "namespaces", where=CLUSTER)),
        user("create in its namespace", may("create", "namespaces")),
        user("update and create at the cluster scope", may("update create", "namespaces", where=CLUSTER)),
    ),
    (
        request("GET of its own", "GET", f"{SPACES}/<<ns>>"),
        request("GET of another", "GET", f"{SPACES}/{ELSEWHERE}"),
        request("list of its own name", "GET", f"{SPACES}?{NAMED}<<ns>>"),
        request("list of another name", "GET", f"{SPACES}?{NAMED}{ELSEWHERE}"),
        request("watch=1 of its own name", "GET", f"{SPACES}?watch=1&{NAMED}<<ns>>&{WATCH}"),
        request("watch by path of its own", "GET", f"/api/v1/watch/namespaces/<<ns>>?{WATCH}"),
        request("PUT of finalize", "PUT", f"{SPACES}/<<ns>>/finalize", FINALIZED),
        request("GET of finalize", "GET", f"{SPACES}/<<ns>>/finalize"),
        request("merge patch of the status", "PATCH", f"{SPACES}/<<ns>>/status", {"status": {"phase": "Active"}}, type_=MERGE),
        request("merge patch of its own", "PATCH", f"{SPACES}/<<ns>>", {"metadata": {"labels": {"x": "y"}}}, type_=MERGE),
        request("POST", "POST", SPACES, document("v1", "Namespace", "<<user>>-posted")),
        request("apply that creates", "PATCH", f"{SPACES}/<<user>>-applied?fieldManager=me", document("v1", "Namespace", "<<user>>-applied"), type_=APPLY),
        request("PUT of an absent object", "PUT", f"{SPACES}/<<user>>-put", document("v1", "Namespace", "<<user>>-put")),
    ),
)


# -- custom resources -------------------------------------------------------------------------

WIDGETS = collection("widgets", "matrix.test")
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}
DEFINITION = document(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "widgets.matrix.test",
    spec={
        "group": "matrix.test",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _SCHEMA},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }
        ],
    },
)


def widget(name: str) -> dict[str, Any]:
    return document("matrix.test/v1", "Widget", name, metadata=marked(name), spec={"replicas": 1})


def _custom_parts() -> tuple[Request, ...]:
    one, given = f"{WIDGETS}/<<name>>", [(WIDGETS, widget("<<name>>"))]
    return (
        request("GET of the scale", "GET", f"{one}/scale", given=given),
        request("patch of an unknown type", "PATCH", one, {"spec": {"replicas": 4}}, given=given),
        request("merge patch of the scale", "PATCH", f"{one}/scale", {"spec": {"replicas": 4}}, type_=MERGE, given=given),
        request("GET of the status", "GET", f"{one}/status", given=given),
        request("merge patch of the status", "PATCH", f"{one}/status", {"status": {"replicas": 4}}, type_=MERGE, given=given),
        request("GET of a subresource that does not exist", "GET", f"{one}/log", given=given),
        request("list of one name", "GET", f"{WIDGETS}?{NAMED}one"),
        request("watch=1 of one name", "GET", f"{WIDGETS}?watch=1&{NAMED}one&{WATCH}"),
        request("watch by path of one", "GET", f"/apis/matrix.test/v1/watch/namespaces/<<ns>>/widgets/one?{WATCH}"),
    )


CUSTOM = Chapter(
    "widgets",
    (
        user("patch", may("patch", "widgets", "matrix.test")),
        user("patch and create", may("patch create", "widgets", "matrix.test")),
        user("update and create", may("update create", "widgets", "matrix.test")),
        user("delete", may("delete", "widgets", "matrix.test")),
        user("deletecollection", may("deletecollection", "widgets", "matrix.test")),
        user("get on a subresource that does not exist", may("get", "widgets/log", "matrix.test")),
        user("get and patch of the scale", may("get patch", "widgets/scale", "matrix.test")),
        user("get and patch of the status", may("get patch", "widgets/status", "matrix.test")),
        user("list and watch on one name", may("list watch", "widgets", "matrix.test", only="one")),
    ),
    (
        *_custom_parts(),
        *writes(WIDGETS, widget, {"spec": {"replicas": 2}}, [{"op": "replace", "path": "/spec/replicas", "value": 2}], strategic=False),
    ),
    setting=((WIDGETS, widget("one")), (WIDGETS, widget("two"))),
    remains=((WIDGETS, "spec.replicas"),),
)

CHAPTERS = (CONFIG_MAPS, LEASE, SERVICE, EVENT, DEPLOYMENT, POD, NAMESPACE, CUSTOM)
