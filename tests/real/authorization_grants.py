"""The chapters of the authorization matrix about rights themselves: identities, roles, reviews, signers and paths."""

from __future__ import annotations

from typing import Any

from tests.real.authorization_chapters import MAPS, NAMED, WATCH, config_map
from tests.real.authorization_rows import (
    APPLY,
    CLUSTER,
    ELSEWHERE,
    JSON_PATCH,
    MERGE,
    RBAC,
    Chapter,
    Request,
    User,
    collection,
    document,
    may,
    may_request,
    request,
    user,
)
from tests.real.scenario import CSR

# fmt: off
# One request is one line.

# -- roles and bindings -----------------------------------------------------------------------

ROLES, BINDINGS = collection("roles", RBAC), collection("rolebindings", RBAC)
CLUSTER_ROLES = collection("clusterroles", RBAC, CLUSTER)
GET_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
GET_SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
SUBJECT = {"apiGroup": RBAC, "kind": "User", "name": "friend"}


def role(name: str, *rules: Any) -> dict[str, Any]:
    return document(f"{RBAC}/v1", "Role", name, rules=list(rules))


def binding(name: str, of: str = "secrets", kind: str = "Role") -> dict[str, Any]:
    ref = {"apiGroup": RBAC, "kind": kind, "name": of}
    return document(f"{RBAC}/v1", "RoleBinding", name, roleRef=ref, subjects=[SUBJECT])


def _role_requests() -> tuple[Request, ...]:
    one, pods = f"{ROLES}/<<name>>", [(ROLES, role("<<name>>", GET_PODS))]
    secrets = [(ROLES, role("<<name>>", GET_SECRETS))]
    add = [{"op": "add", "path": "/rules/-", "value": GET_SECRETS}]
    versioned = {"metadata": {"name": "<<name>>", "resourceVersion": "1"}}
    aggregated = document(
        f"{RBAC}/v1",
        "ClusterRole",
        "<<user>>-aggregated",
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    )
    return (
        request("POST of a right it has", "POST", ROLES, role("<<name>>", GET_PODS)),
        request("POST of a right it lacks", "POST", ROLES, role("<<name>>", GET_SECRETS)),
        request("POST of a right it lacks, dry run", "POST", f"{ROLES}?dryRun=All", role("<<name>>", GET_SECRETS)),
        request("POST of a right it lacks, by an invalid role", "POST", ROLES, role("<<name>>", {**GET_SECRETS, "nonResourceURLs": ["/"]})),
        request("POST of a right it lacks, by a generated name", "POST", ROLES, {"metadata": {"generateName": "gen-"}, "rules": [GET_SECRETS]}),
        request("POST of a right it lacks, by a taken name", "POST", ROLES, role("<<name>>", GET_SECRETS), given=pods),
        request("PUT that adds a right it lacks", "PUT", one, role("<<name>>", GET_PODS, GET_SECRETS), given=pods),
        request("PUT that adds a right it lacks, at an old version", "PUT", one, {**role("<<name>>", GET_SECRETS), **versioned}, given=pods),
        request("PUT that leaves a right it lacks", "PUT", one, {**role("<<name>>", GET_SECRETS), "metadata": {"name": "<<name>>", "labels": {"a": "b"}}}, given=secrets),
        request("PUT that removes a right it lacks", "PUT", one, role("<<name>>", GET_PODS), given=secrets),
        request("PUT that creates a role of a right it lacks", "PUT", one, role("<<name>>", GET_SECRETS)),
        request("PUT that creates a role of a right it has", "PUT", one, role("<<name>>", GET_PODS)),
        request("JSON patch that adds a right it lacks", "PATCH", one, add, type_=JSON_PATCH, given=pods),
        request("merge patch that adds a finalizer to a role of a right it lacks", "PATCH", one, {"metadata": {"finalizers": ["a.example/b"]}}, type_=MERGE, given=secrets),
        request("merge patch that labels a role of a right it lacks", "PATCH", one, {"metadata": {"labels": {"a": "b"}}}, type_=MERGE, given=secrets),
        request("apply that creates a role of a right it lacks", "PATCH", f"{one}?fieldManager=me", role("<<name>>", GET_SECRETS), type_=APPLY),
        request("apply that creates a role of a right it has", "PATCH", f"{one}?fieldManager=me", role("<<name>>", GET_PODS), type_=APPLY),
        request("apply that adds a right it lacks", "PATCH", f"{one}?fieldManager=me&force=true", role("<<name>>", GET_SECRETS), type_=APPLY, given=pods),
        request("POST of an aggregated role", "POST", CLUSTER_ROLES, aggregated),
    )


def _may_write(what: str, verbs: str = "create update patch", only: str = "") -> Any:
    return may(verbs, what, RBAC, only=only)


ROLE = Chapter(
    "roles",
    (
        user("writes on roles", _may_write("roles"), may("get", "pods")),
        user("update and patch on roles", _may_write("roles", "update patch"), may("get", "pods")),
        user("writes and escalate on roles", _may_write("roles", "create update patch escalate")),
        user(
            "writes on roles, and escalate on one name",
            _may_write("roles"),
            may("get", "pods"),
            _may_write("roles", "escalate", "apply-that-creates-a-role-of-a-right-it-lacks"),
        ),
        user("writes on roles and the right itself", _may_write("roles"), may("get", "pods secrets")),
        user("writes on roles, and bind on roles", _may_write("roles", "create update patch bind"), may("get", "pods")),
        user("writes on cluster roles", may("create", "clusterroles", RBAC, where=CLUSTER)),
    ),
    _role_requests(),
    remains=((ROLES, "rules"),),
)


def _binding_requests() -> tuple[Request, ...]:
    one, given = f"{BINDINGS}/<<name>>", [(BINDINGS, binding("<<name>>"))]
    joined = {"subjects": [SUBJECT, {**SUBJECT, "name": "other"}]}
    return (
        request("POST to a role of more rights", "POST", BINDINGS, binding("<<name>>")),
        request("POST to a role of more rights, dry run", "POST", f"{BINDINGS}?dryRun=All", binding("<<name>>")),
        request("POST to a role of rights it has", "POST", BINDINGS, binding("<<name>>", "pods")),
        request("POST to an absent role", "POST", BINDINGS, binding("<<name>>", "absent")),
        request("POST to a cluster role", "POST", BINDINGS, binding("<<name>>", "system:kube-dns", "ClusterRole")),
        request("PUT that adds a subject", "PUT", one, {**binding("<<name>>"), **joined}, given=given),
        request("PUT that creates a binding", "PUT", one, binding("<<name>>")),
        request("merge patch that adds a subject", "PATCH", one, joined, type_=MERGE, given=given),
        request("merge patch that adds a finalizer", "PATCH", one, {"metadata": {"finalizers": ["a.example/b"]}}, type_=MERGE, given=given),
        request("apply that creates a binding", "PATCH", f"{one}?fieldManager=me", binding("<<name>>"), type_=APPLY),
    )


ROLE_BINDING = Chapter(
    "rolebindings",
    (
        user("writes on bindings", _may_write("rolebindings"), may("get", "pods")),
        user("update and patch on bindings", _may_write("rolebindings", "update patch"), may("get", "secrets")),
        user("writes on bindings, and bind on that role", _may_write("rolebindings"), _may_write("roles", "bind", "secrets absent")),
        user("writes on bindings, and bind on every role", _may_write("rolebindings"), _may_write("roles", "bind")),
        user("writes on bindings, and bind on a cluster role", _may_write("rolebindings"), _may_write("clusterroles", "bind", "system:kube-dns")),
        user("writes on bindings, and escalate on roles", _may_write("rolebindings"), _may_write("roles", "escalate")),
        user("writes on bindings and the right itself", _may_write("rolebindings"), may("get", "pods secrets")),
    ),
    _binding_requests(),
    setting=((ROLES, role("secrets", GET_SECRETS)), (ROLES, role("pods", GET_PODS))),
    remains=((BINDINGS, "subjects"),),
)


# -- certificate signing requests -------------------------------------------------------------

CERTIFICATES = "certificates.k8s.io"
REQUESTS = collection("certificatesigningrequests", CERTIFICATES, CLUSTER)
FORGED = {"username": "system:admin", "uid": "7", "groups": ["system:masters"], "extra": {"a": ["b"]}}
OWNER = "spec.username spec.uid spec.groups spec.extra"
CERTIFICATE = CSR["request"]


def signing_request(name: str, **more: Any) -> dict[str, Any]:
    spec = {**CSR, "usages": ["client auth"], **more}
    return document(f"{CERTIFICATES}/v1", "CertificateSigningRequest", name, spec=spec)


def _signing_requests() -> tuple[Request, ...]:
    one, new = "<<user>>-<<name>>", signing_request("<<user>>-<<name>>")
    path, given = f"{REQUESTS}/{one}", [(REQUESTS, signing_request("<<user>>-<<name>>"))]
    approved = {"conditions": [{"type": "Approved", "status": "True", "reason": "Fine", "message": "m"}]}
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "Bad", "message": "m"}]}
    forged = signing_request(one, **FORGED)
    return (
        request("POST", "POST", REQUESTS, new, shown=OWNER),
        request("POST that names another user", "POST", REQUESTS, forged, shown=OWNER),
        request("apply that creates, naming another user", "PATCH", f"{path}?fieldManager=me", forged, type_=APPLY, shown=OWNER),
        request("apply that creates, naming another user, dry run", "PATCH", f"{path}?fieldManager=me&dryRun=All", forged, type_=APPLY, shown=OWNER),
        request("apply that updates, naming another user", "PATCH", f"{path}?fieldManager=me&force=true", forged, type_=APPLY, given=given, shown=OWNER),
        request("merge patch that names another user", "PATCH", path, {"spec": FORGED}, type_=MERGE, given=given, shown=OWNER),
        request("PUT of an absent object", "PUT", path, new),
        request("merge patch of the conditions", "PATCH", path, {"status": approved}, type_=MERGE, given=given, shown="status.conditions"),
        request("merge patch of the approval", "PATCH", f"{path}/approval", {"status": approved}, type_=MERGE, given=given),
        request("PUT of the approval", "PUT", f"{path}/approval", {**new, "status": approved}, given=given),
        request("PUT of the approval, dry run", "PUT", f"{path}/approval?dryRun=All", {**new, "status": approved}, given=given),
        request("PUT of the approval that approves nothing", "PUT", f"{path}/approval", new, given=given),
        request("merge patch of the status that fails the request", "PATCH", f"{path}/status", {"status": failed}, type_=MERGE, given=given),
        request("merge patch of the status with a certificate", "PATCH", f"{path}/status", {"status": {"certificate": "bm8="}}, type_=MERGE, given=given),
    )


def _may_sign(verbs: str, part: str = "", only: str = "") -> Any:
    what = f"certificatesigningrequests/{part}" if part else "certificatesigningrequests"
    return may(verbs, "signers" if only else what, CERTIFICATES, only=only, where=CLUSTER)


CERTIFICATE_REQUEST = Chapter(
    "certificates",
    (
        user("create", _may_sign("create")),
        user("patch", _may_sign("patch")),
        user("patch and create", _may_sign("patch create")),
        user("update", _may_sign("update")),
        user("writes of the approval", _may_sign("update patch", "approval")),
        user("approve on the signer", _may_sign("approve", only="example.com/signer")),
        user("writes of the approval, and approve on the signer", _may_sign("update patch", "approval"), _may_sign("approve", only="example.com/signer")),
        user("writes of the approval, and approve on the domain", _may_sign("update patch", "approval"), _may_sign("approve", only="example.com/*")),
        user("writes of the approval, and sign on the signer", _may_sign("update patch", "approval"), _may_sign("sign", only="example.com/signer")),
        user("writes of the approval, and approve on another signer", _may_sign("update patch", "approval"), _may_sign("approve", only="example.com/other")),
        user("writes of the status", _may_sign("update patch", "status")),
        user("writes of the status, and sign on the signer", _may_sign("update patch", "status"), _may_sign("sign", only="example.com/signer")),
    ),
    _signing_requests(),
)


# -- tokens of service accounts ---------------------------------------------------------------

ACCOUNTS = collection("serviceaccounts")
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}

ACCOUNT = Chapter(
    "serviceaccounts",
    (
        user("every verb on the object", may("*", "serviceaccounts")),
        user("get on the token", may("get", "serviceaccounts/token")),
        user("create on the token", may("create", "serviceaccounts/token")),
        user("create on the token of one name", may("create", "serviceaccounts/token", only="one")),
        user("update on the token", may("update", "serviceaccounts/token")),
    ),
    (
        request("POST of a token", "POST", f"{ACCOUNTS}/one/token", TOKEN, quiet=True),
        request("POST of a token, dry run", "POST", f"{ACCOUNTS}/one/token?dryRun=All", TOKEN, quiet=True),
        request("POST of a token of another", "POST", f"{ACCOUNTS}/two/token", TOKEN, quiet=True),
        request("POST of a token of an absent account", "POST", f"{ACCOUNTS}/three/token", TOKEN, quiet=True),
        request("GET of a token", "GET", f"{ACCOUNTS}/one/token"),
        request("PUT of a token", "PUT", f"{ACCOUNTS}/one/token", TOKEN),
    ),
    setting=((ACCOUNTS, {"metadata": {"name": "one"}}), (ACCOUNTS, {"metadata": {"name": "two"}})),
)


# -- impersonation ----------------------------------------------------------------------------


def _as(title: str, **headers: str) -> Request:
    asked = {name.replace("_", "-"): value for name, value in headers.items()}
    return request(title, "GET", f"{MAPS}/one", headers=asked)


def _may_impersonate(what: str, only: str = "", group: str = "", verb: str = "impersonate", where: str = CLUSTER) -> Any:
    return may(verb, what, group, only=only, where=where)


AUTHENTICATION = "authentication.k8s.io"
ROBOT = "system:serviceaccount:elsewhere:robot"

IMPERSONATION = Chapter(
    "impersonation",
    (
        user("no right"),
        user("impersonate on users", _may_impersonate("users")),
        user("impersonate on one user", _may_impersonate("users", "reader")),
        user("impersonate on groups", _may_impersonate("groups")),
        user("impersonate on users and one group", _may_impersonate("users"), _may_impersonate("groups", "readers")),
        user("impersonate on users and uids", _may_impersonate("users"), _may_impersonate("uids", "7", AUTHENTICATION)),
        user("impersonate on users and one extra", _may_impersonate("users"), _may_impersonate("userextras/scopes", "view", AUTHENTICATION)),
        user("impersonate on service accounts", _may_impersonate("serviceaccounts")),
        user("impersonate on service accounts of one namespace", _may_impersonate("serviceaccounts", where=ELSEWHERE)),
        user("the constrained right on one user", _may_impersonate("users", "reader", AUTHENTICATION, "impersonate:user-info"), may("impersonate-on:user-info:get", "configmaps")),
        user("the constrained right without the request's", _may_impersonate("users", "reader", AUTHENTICATION, "impersonate:user-info")),
        user("the constrained right on a service account", _may_impersonate("serviceaccounts", "robot", AUTHENTICATION, "impersonate:serviceaccount", ELSEWHERE), may("impersonate-on:serviceaccount:get", "configmaps")),
    ),
    (
        _as("as a user with the right", Impersonate_User="reader"),
        _as("as a user without the right", Impersonate_User="stranger"),
        _as("as a user in a group with the right", Impersonate_User="stranger", Impersonate_Group="readers"),
        _as("as a user in a group without the right", Impersonate_User="reader", Impersonate_Group="strangers"),
        _as("as a user in a group of administrators", Impersonate_User="reader", Impersonate_Group="system:masters"),
        _as("as a user with a uid", Impersonate_User="reader", Impersonate_Uid="7"),
        _as("as a user with another uid", Impersonate_User="reader", Impersonate_Uid="8"),
        _as("as a user with an extra", Impersonate_User="reader", Impersonate_Extra_scopes="view"),
        _as("as a user with another extra", Impersonate_User="reader", Impersonate_Extra_scopes="edit"),
        _as("as a service account", Impersonate_User=ROBOT),
        _as("as a service account of another namespace", Impersonate_User="system:serviceaccount:default:robot"),
        _as("as a node", Impersonate_User="system:node:n"),
        _as("as the anonymous user", Impersonate_User="system:anonymous"),
        _as("as a group without a user", Impersonate_Group="readers"),
        request("as a user, of a request that is refused", "GET", MAPS, headers={"Impersonate-User": "reader"}),
        request("as a user, of a path", "GET", "/metrics", headers={"Impersonate-User": "reader"}, quiet=True),
    ),
    setting=((MAPS, config_map("one")),),
)


# -- reviews ----------------------------------------------------------------------------------

AUTHORIZATION = "authorization.k8s.io"


def _review(kind: str, spec: Any, namespace: str = CLUSTER, group: str = AUTHORIZATION) -> tuple[str, dict[str, Any]]:
    body: dict[str, Any] = {"apiVersion": f"{group}/v1", "kind": kind}
    if spec is not None:
        body["spec"] = spec
    if namespace:
        body["metadata"] = {"namespace": namespace}
    return collection(f"{kind.lower()}s", group, namespace), body


def _get_maps(**more: str) -> dict[str, Any]:
    return {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "<<ns>>", **more}}


REVIEW = Chapter(
    "reviews",
    (
        user("no right"),
        user("get on one configmap", may("get", "configmaps", only="one")),
        user("create on subject access reviews", may("create", "subjectaccessreviews", AUTHORIZATION, where=CLUSTER)),
        user("create on local reviews", may("create", "localsubjectaccessreviews", AUTHORIZATION)),
        user("create on token reviews", may("create", "tokenreviews", AUTHENTICATION, where=CLUSTER)),
        User("no certificate", anonymous=True),
    ),
    (
        request("self access review", "POST", *_review("SelfSubjectAccessReview", _get_maps())),
        request("self access review of one name", "POST", *_review("SelfSubjectAccessReview", _get_maps(name="one"))),
        request("self access review, dry run", "POST", _review("SelfSubjectAccessReview", {})[0] + "?dryRun=All", _review("SelfSubjectAccessReview", _get_maps(name="one"))[1]),
        request("self access review of a path", "POST", *_review("SelfSubjectAccessReview", {"nonResourceAttributes": {"verb": "get", "path": "/api"}})),
        request("self access review of nothing", "POST", *_review("SelfSubjectAccessReview", {})),
        request("self rules review", "POST", *_review("SelfSubjectRulesReview", {"namespace": "<<ns>>"})),
        request("self rules review of no namespace", "POST", *_review("SelfSubjectRulesReview", {})),
        request("self review", "POST", *_review("SelfSubjectReview", None, group=AUTHENTICATION)),
        request("access review of itself", "POST", *_review("SubjectAccessReview", {"user": "<<user>>", **_get_maps(name="one")})),
        request("access review of an administrator", "POST", *_review("SubjectAccessReview", {"groups": ["system:masters"], **_get_maps()})),
        request("local access review", "POST", *_review("LocalSubjectAccessReview", {"user": "<<user>>", **_get_maps()}, "<<ns>>")),
        request("local access review of another namespace", "POST", *_review("LocalSubjectAccessReview", {"user": "<<user>>", **_get_maps(namespace=ELSEWHERE)}, "<<ns>>")),
        request("token review", "POST", *_review("TokenReview", {"token": "none"}, group=AUTHENTICATION)),
        request("GET of reviews", "GET", collection("subjectaccessreviews", AUTHORIZATION, CLUSTER)),
    ),
)


# -- paths that are no resources --------------------------------------------------------------

PATH = Chapter(
    "paths",
    (
        user("no right"),
        user("get on the metrics", may_request("get", "/metrics")),
        user("get on paths below the health", may_request("get", "/livez/*")),
        user("every verb on every path", may_request("*", "*")),
        user("every verb on every resource", may("*", "*", "*", where=CLUSTER)),
        User("no certificate", anonymous=True),
    ),
    (
        request("GET of the root", "GET", "/", quiet=True),
        request("GET of the metrics", "GET", "/metrics", quiet=True),
        request("HEAD of the metrics", "HEAD", "/metrics", quiet=True),
        request("GET below the metrics", "GET", "/metrics/x", quiet=True),
        request("GET of the health", "GET", "/healthz"),
        request("GET of one check", "GET", "/livez/ping"),
        request("POST to the health", "POST", "/healthz", {}, quiet=True),
        request("POST to the metrics", "POST", "/metrics", {}, quiet=True),
        request("POST to the version", "POST", "/version", {}, quiet=True),
        request("POST to an unknown path", "POST", "/unknown", {}, quiet=True),
        request("GET of the version", "GET", "/version", quiet=True),
        request("GET of the groups", "GET", "/apis", quiet=True),
        request("GET of one group", "GET", "/apis/apps", quiet=True),
        request("GET of one version", "GET", "/apis/apps/v1", quiet=True),
        request("GET of the openapi documents", "GET", "/openapi/v3", quiet=True),
        request("GET of the openid configuration", "GET", "/.well-known/openid-configuration", quiet=True),
        request("GET of an unknown path", "GET", "/unknown", quiet=True),
        request("GET of a path with a tag in it", "GET", "/%3Cb%3E&", quiet=True),
        request("GET of pods by a doubled slash", "GET", "//api/v1/pods", quiet=True),
        request("GET of pods with a slash at the end", "GET", "/api/v1/pods/?labelSelector=none%3Dnone", quiet=True),
        request("GET of an unknown resource", "GET", "/api/v1/unknown", quiet=True),
        request("GET of an unknown group", "GET", "/apis/unknown.example/v1/things", quiet=True),
        request("GET of the proxy verb", "GET", "/api/v1/proxy/nodes/n", quiet=True),
        request("GET of the watch verb alone", "GET", "/api/v1/watch", quiet=True),
        request("watch of what cannot be watched", "GET", f"/api/v1/watch/componentstatuses?{WATCH}", quiet=True),
        request("list of nodes of one name", "GET", f"/api/v1/nodes?{NAMED}n"),
        request("GET through the proxy of an absent node", "GET", "/api/v1/nodes/n/proxy/x"),
    ),
)


# -- rights that a field needs ----------------------------------------------------------------

ADMISSION = "admissionregistration.k8s.io"
POLICIES = collection("validatingadmissionpolicies", ADMISSION, CLUSTER)
POLICY_BINDINGS = collection("validatingadmissionpolicybindings", ADMISSION, CLUSTER)


def policy(name: str, kind: str = "ConfigMap", api_version: str = "v1") -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    spec: dict[str, Any] = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]}
    if kind:
        spec["paramKind"] = {"apiVersion": api_version, "kind": kind}
    return document(f"{ADMISSION}/v1", "ValidatingAdmissionPolicy", name, spec=spec)


def policy_binding(called: str, of: str, **param: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"policyName": of, "validationActions": ["Deny"]}
    if param:
        spec["paramRef"] = {"parameterNotFoundAction": "Deny", **param}
    return document(f"{ADMISSION}/v1", "ValidatingAdmissionPolicyBinding", called, spec=spec)


MUTATING_POLICIES = collection("mutatingadmissionpolicies", ADMISSION, CLUSTER)
MUTATING_BINDINGS = collection("mutatingadmissionpolicybindings", ADMISSION, CLUSTER)


def mutating_policy(name: str) -> dict[str, Any]:
    made = policy(name)
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
    spec = {**made["spec"], "mutations": [mutation], "reinvocationPolicy": "Never", "failurePolicy": "Fail"}
    del spec["validations"]
    return {**made, "kind": "MutatingAdmissionPolicy", "spec": spec}


def mutating_binding(called: str, of: str, **param: Any) -> dict[str, Any]:
    made = policy_binding(called, of, **param)
    del made["spec"]["validationActions"]
    return {**made, "kind": "MutatingAdmissionPolicyBinding"}


def _policy_requests() -> tuple[Request, ...]:
    one, name = f"{POLICIES}/<<user>>-<<name>>", "<<user>>-<<name>>"
    kind = {"spec": {"paramKind": {"apiVersion": "v1", "kind": "Secret"}}}
    bound = f"{POLICY_BINDINGS}/<<user>>-<<name>>"
    return (
        request("POST without parameters", "POST", POLICIES, policy(name, "")),
        request("POST with parameters", "POST", POLICIES, policy(name)),
        request("POST with parameters of an unknown kind", "POST", POLICIES, policy(name, "Thing", "example.com/v1")),
        request("POST with parameters of an invalid policy", "POST", POLICIES, {**policy(name), "spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}),
        request("apply that creates with parameters", "PATCH", f"{one}?fieldManager=me", policy(name), type_=APPLY),
        request("merge patch of the parameters", "PATCH", one, kind, type_=MERGE, given=[(POLICIES, policy(name))]),
        request("merge patch that leaves the parameters", "PATCH", one, {"metadata": {"labels": {"a": "b"}}}, type_=MERGE, given=[(POLICIES, policy(name))]),
        request("POST of a binding without parameters", "POST", POLICY_BINDINGS, policy_binding(name, "<<user>>")),
        request("POST of a binding to one object", "POST", POLICY_BINDINGS, policy_binding(name, "<<user>>", name="one", namespace="<<ns>>")),
        request("POST of a binding to selected objects", "POST", POLICY_BINDINGS, policy_binding(name, "<<user>>", selector={}, namespace="<<ns>>")),
        request("POST of a binding to an absent policy", "POST", POLICY_BINDINGS, policy_binding(name, "absent", name="one", namespace="<<ns>>")),
        request("POST of a mutating policy with parameters", "POST", MUTATING_POLICIES, mutating_policy(name)),
        request("POST of a mutating binding to one object", "POST", MUTATING_BINDINGS, mutating_binding(name, "<<user>>", name="one", namespace="<<ns>>")),
        request("merge patch of a binding", "PATCH", bound, {"spec": {"paramRef": {"name": "two"}}}, type_=MERGE, given=[(POLICY_BINDINGS, policy_binding(name, "<<user>>", name="one", namespace="<<ns>>"))]),
    )


_POLICY_RESOURCES = "validatingadmissionpolicies validatingadmissionpolicybindings mutatingadmissionpolicies mutatingadmissionpolicybindings"
_POLICY_WRITES = may("create update patch", _POLICY_RESOURCES, ADMISSION, where=CLUSTER)

POLICY = Chapter(
    "policies",
    (
        user("writes", _POLICY_WRITES),
        user("writes, and get on its own configmaps", _POLICY_WRITES, may("get", "configmaps")),
        user("writes, and list on its own configmaps", _POLICY_WRITES, may("list", "configmaps")),
        user("writes, and get on every configmap", _POLICY_WRITES, may("get", "configmaps", where=CLUSTER)),
        user("writes, and get on one configmap", _POLICY_WRITES, may("get", "configmaps", only="one", where=CLUSTER)),
        user("writes, and get on everything", _POLICY_WRITES, may("get", "*", "*", where=CLUSTER)),
    ),
    _policy_requests(),
    setting=((POLICIES, policy("<<user>>")), (MUTATING_POLICIES, mutating_policy("<<user>>"))),
)

DEVICES = "resource.k8s.io"
CLAIMS = collection("resourceclaims", DEVICES)


def claim(name: str) -> dict[str, Any]:
    wanted = {"name": "r", "exactly": {"deviceClassName": "c"}}
    return document(f"{DEVICES}/v1", "ResourceClaim", name, spec={"devices": {"requests": [wanted]}})


ALLOCATED = {"devices": {"results": [{"request": "r", "driver": "d.example", "pool": "p", "device": "x"}]}}
REPORTED = [{"driver": "d.example", "pool": "p", "device": "x"}]


def _claim_requests() -> tuple[Request, ...]:
    path, given = f"{CLAIMS}/<<name>>/status", [(CLAIMS, claim("<<name>>"))]

    def asked(title: str, status: Any, dry: str = "") -> Request:
        return request(title, "PATCH", path + dry, {"status": status}, type_=MERGE, given=given, shown="status.devices")

    return (
        asked("patch of the allocation", {"allocation": ALLOCATED}),
        asked("patch of the allocation, dry run", {"allocation": ALLOCATED}, "?dryRun=All"),
        asked("patch of the allocation and of the devices", {"allocation": ALLOCATED, "devices": REPORTED}),
        asked("patch of nothing", {}),
        request("PUT of the allocation", "PUT", path, {**claim("<<name>>"), "status": {"allocation": ALLOCATED}}, given=given),
    )


_CLAIM_STATUS = may("update patch", "resourceclaims/status", DEVICES)

CLAIM = Chapter(
    "claims",
    (
        user("writes of the status", _CLAIM_STATUS),
        user("writes of the status and of the binding in its namespace", _CLAIM_STATUS, may("update patch", "resourceclaims/binding", DEVICES)),
        user("writes of the status and of the binding", _CLAIM_STATUS, may("update patch", "resourceclaims/binding", DEVICES, where=CLUSTER)),
        user("patch of the status and of the binding", may("patch", "resourceclaims/status", DEVICES), may("patch", "resourceclaims/binding", DEVICES, where=CLUSTER)),
        user("writes of the status, of the binding and of the driver", _CLAIM_STATUS, may("update patch", "resourceclaims/binding", DEVICES, where=CLUSTER), may("arbitrary-node:patch", "resourceclaims/driver", DEVICES, only="d.example")),
        user("writes of the status, of the binding and of another driver", _CLAIM_STATUS, may("update patch", "resourceclaims/binding", DEVICES, where=CLUSTER), may("arbitrary-node:patch", "resourceclaims/driver", DEVICES, only="e.example")),
    ),
    _claim_requests(),
)

CHAPTERS = (ROLE, ROLE_BINDING, CERTIFICATE_REQUEST, ACCOUNT, IMPERSONATION, REVIEW, PATH, POLICY, CLAIM)
