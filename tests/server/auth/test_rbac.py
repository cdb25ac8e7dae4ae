"""The authorizer: who is meant by a binding, what they may do, and that its index changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.rbac_v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from steersman.server.auth.attributes import Attributes, Decision
from steersman.server.auth.rbac import GROUP, Policy, RBACAuthorizer
from steersman.server.auth.rbac_rules import rule_allows
from steersman.server.auth.users import User, service_account_user

PODS = PolicyRule(verbs=("get",), apiGroups=("",), resources=("pods",))
ALL = PolicyRule(verbs=("*",), apiGroups=("*",), resources=("*",))


def subjects(*words: str) -> tuple[Subject, ...]:
    """``User:ann``, ``Group:dev``, ``ServiceAccount:ns/bot`` or ``ServiceAccount:bot``."""
    found = []
    for word in words:
        kind, _, name = word.partition(":")
        namespace, slash, short = name.partition("/")
        found.append(
            Subject(kind=kind, name=short, namespace=namespace) if slash else Subject(kind=kind, name=name)
        )
    return tuple(found)


def cluster_role(name: str, *rules: PolicyRule) -> ClusterRole:
    return ClusterRole(metadata=ObjectMeta(name=name), rules=rules)


def role(namespace: str, name: str, *rules: PolicyRule) -> Role:
    return Role(metadata=ObjectMeta(namespace=namespace, name=name), rules=rules)


def cluster_binding(name: str, to: str, *words: str) -> ClusterRoleBinding:
    return ClusterRoleBinding(
        metadata=ObjectMeta(name=name),
        roleRef=RoleRef(apiGroup=GROUP, kind="ClusterRole", name=to),
        subjects=subjects(*words),
    )


def binding(namespace: str, name: str, kind: str, to: str, *words: str) -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(namespace=namespace, name=name),
        roleRef=RoleRef(apiGroup=GROUP, kind=kind, name=to),
        subjects=subjects(*words),
    )


def reads_pods(user: User, namespace: str = "ns") -> Attributes:
    return Attributes(user, "get", "", "pods", namespace=namespace, name="p")


@pytest.mark.parametrize(
    ("words", "user", "subject"),
    [
        (["User:ann"], User("ann"), 'User "ann"'),
        (["User:bob", "User:ann"], User("ann"), 'User "ann"'),
        (["User:bob", "User:ann"], User("zim"), None),
        (["User:bob", "Group:dev"], User("ann", groups=("dev",)), 'Group "dev"'),
        (["Group:dev", "User:ann"], User("ann", groups=("dev",)), 'Group "dev"'),
        (["User:ann", "Group:dev"], User("ann", groups=("dev",)), 'User "ann"'),
        (["User:dev"], User("ann", groups=("dev",)), None),
        (["Group:ann"], User("ann"), None),
        (["User:*"], User("ann"), None),
        (
            ["ServiceAccount:other/bot"],
            service_account_user("other", "bot", ""),
            'ServiceAccount "bot/other"',
        ),
        (["ServiceAccount:bot"], service_account_user("ns", "bot", ""), 'ServiceAccount "bot/ns"'),
        (["ServiceAccount:bot"], service_account_user("other", "bot", ""), None),
        (
            ["User:system:serviceaccount:ns:bot"],
            service_account_user("ns", "bot", ""),
            'User "system:serviceaccount:ns:bot"',
        ),
        (["Robot:ann"], User("ann"), None),
    ],
)
def test_a_binding_is_about_the_first_of_its_subjects_that_matches(
    words: list[str], user: User, subject: str | None
) -> None:
    rbac = RBACAuthorizer([cluster_role("r", PODS), binding("ns", "b", "ClusterRole", "r", *words)])
    reason = f'RBAC: allowed by RoleBinding "b/ns" of ClusterRole "r" to {subject}'
    assert rbac.authorize(reads_pods(user)) == (Decision(True, reason) if subject else Decision(False))


def test_a_cluster_binding_to_an_account_needs_its_namespace() -> None:
    rbac = RBACAuthorizer([cluster_role("r", PODS), cluster_binding("b", "r", "ServiceAccount:bot")])
    assert not rbac.authorize(reads_pods(service_account_user("ns", "bot", ""))).allowed


@pytest.mark.parametrize(("namespace", "allowed"), [("ns", True), ("other", False), ("", False)])
def test_a_binding_of_a_namespace_holds_only_there(namespace: str, allowed: bool) -> None:
    rbac = RBACAuthorizer([cluster_role("r", ALL), binding("ns", "b", "ClusterRole", "r", "User:ann")])
    assert rbac.authorize(reads_pods(User("ann"), namespace)).allowed is allowed


def test_a_cluster_binding_holds_everywhere() -> None:
    rbac = RBACAuthorizer([cluster_role("r", PODS), cluster_binding("b", "r", "Group:dev")])
    ann = User("ann", groups=("dev",))
    assert all(rbac.authorize(reads_pods(ann, namespace)).allowed for namespace in ("", "ns", "other"))


def test_a_fork_decides_the_same_until_either_changes() -> None:
    grant = binding("ns", "b", "ClusterRole", "r", "User:ann")
    first = RBACAuthorizer([cluster_role("r", PODS), grant])
    assert first.authorize(reads_pods(User("ann"))).allowed
    fork = first.fork()
    assert fork.authorize(reads_pods(User("ann"))) == first.authorize(reads_pods(User("ann")))
    fork.remove(grant)
    assert not fork.authorize(reads_pods(User("ann"))).allowed
    assert first.authorize(reads_pods(User("ann"))).allowed
    first.put(binding("ns", "c", "ClusterRole", "r", "User:bob"))
    assert first.authorize(reads_pods(User("bob"))).allowed
    assert not fork.authorize(reads_pods(User("bob"))).allowed


def test_a_binding_refers_to_the_role_of_its_own_namespace() -> None:
    rbac = RBACAuthorizer([role("other", "r", PODS), binding("ns", "b", "Role", "r", "User:ann")])
    refused = Decision(False, f'RBAC: role.{GROUP} "r" not found')
    assert rbac.authorize(reads_pods(User("ann"))) == refused
    rbac.put(role("ns", "r", PODS))
    assert rbac.authorize(reads_pods(User("ann"))).allowed


def test_missing_roles_are_told_with_a_refusal_and_not_with_an_answer() -> None:
    lost = [cluster_binding(name, to, "User:ann") for name, to in (("a", "x"), ("b", "x"), ("c", "y"))]
    rbac = RBACAuthorizer(lost)
    told = f'RBAC: [clusterrole.{GROUP} "x" not found, clusterrole.{GROUP} "y" not found]'
    assert rbac.authorize(reads_pods(User("ann"))) == Decision(False, told)
    rbac.put(cluster_role("y", PODS))
    assert rbac.authorize(reads_pods(User("ann"))).allowed


def test_members_of_system_masters_may_do_anything() -> None:
    root = User("root", groups=("system:masters",))
    assert RBACAuthorizer().authorize(Attributes(root, "any", path="/at/all")) == Decision(True)


def test_a_change_counts_from_the_next_question_on() -> None:
    ann = User("ann")
    rbac = RBACAuthorizer()
    bound = binding("ns", "b", "ClusterRole", "r", "User:ann")
    steps: list[tuple[str, Policy, bool]] = [
        ("put", cluster_role("r", PODS), False),
        ("put", bound, True),
        ("put", binding("ns", "b", "ClusterRole", "r", "User:bob"), False),
        ("put", bound, True),
        ("put", cluster_role("r"), False),
        ("put", cluster_role("r", PODS), True),
        ("remove", cluster_role("r"), False),
        ("put", cluster_role("r", PODS), True),
        ("remove", bound, False),
        ("remove", bound, False),
    ]
    for verb, obj, allowed in steps:
        getattr(rbac, verb)(obj)
        assert rbac.authorize(reads_pods(ann)).allowed is allowed, (verb, obj)


def test_what_is_remembered_of_one_name_is_not_told_of_another() -> None:
    named = PolicyRule(verbs=("get",), apiGroups=("",), resources=("pods",), resourceNames=("p",))
    rbac = RBACAuthorizer([cluster_role("r", named), cluster_binding("b", "r", "User:ann")])
    asked = reads_pods(User("ann"))
    assert rbac.authorize(asked).allowed
    assert not rbac.authorize(asked._replace(name="q")).allowed
    assert rbac.authorize(asked).allowed


def test_the_same_name_with_other_groups_is_another_user() -> None:
    rbac = RBACAuthorizer([cluster_role("r", PODS), cluster_binding("b", "r", "Group:dev")])
    assert rbac.authorize(reads_pods(User("ann", groups=("dev",)))).allowed
    assert not rbac.authorize(reads_pods(User("ann", groups=("ops",)))).allowed


# -- the index against plain evaluation -------------------------------------------------------


def applies(subject: Subject, user: User, namespace: str) -> bool:
    if subject.kind == "User":
        return subject.name == user.name
    if subject.kind == "Group":
        return subject.name in user.groups
    home = subject.namespace or namespace
    return bool(home) and user.name == f"system:serviceaccount:{home}:{subject.name}"


def plainly(policy: Iterable[Policy], asked: Attributes) -> bool:
    """Every binding, every rule, one after the other."""
    objects = {(type(obj), *obj.key): obj for obj in policy}
    for obj in objects.values():
        if isinstance(obj, Role | ClusterRole) or obj.metadata.namespace not in ("", asked.namespace):
            continue
        home = obj.metadata.namespace
        if not any(applies(subject, asked.user, home) for subject in obj.subjects):
            continue
        key = (
            (Role, home, obj.roleRef.name)
            if obj.roleRef.kind == "Role"
            else (ClusterRole, "", obj.roleRef.name)
        )
        found = objects.get(key)
        rules = found.rules or () if isinstance(found, Role | ClusterRole) else ()
        if any(rule_allows(rule, asked) for rule in rules):
            return True
    return False


VERBS = ("get", "list", "*")
GROUPS = ("", "apps", "*")
RESOURCES = ("pods", "pods/log", "*/log", "*")
NAMES = ("a", "b")
URLS = ("/api", "/api/*", "*")
SPACES = ("one", "two")
PEOPLE = ("ann", "system:serviceaccount:one:bot", "system:serviceaccount:two:bot")
TEAMS = ("dev", "ops")


def some(values: tuple[str, ...], least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=least, max_size=2, unique=True).map(tuple)


rules = st.builds(
    PolicyRule,
    verbs=some(VERBS, 1),
    apiGroups=some(GROUPS, 1),
    resources=some(RESOURCES, 1),
    resourceNames=some(NAMES),
) | st.builds(PolicyRule, verbs=some(VERBS, 1), nonResourceURLs=some(URLS, 1))
names = st.sampled_from(("r1", "r2"))
subject = st.one_of(
    st.sampled_from(PEOPLE).map(lambda name: Subject(kind="User", name=name)),
    st.sampled_from(TEAMS).map(lambda name: Subject(kind="Group", name=name)),
    st.sampled_from(("", *SPACES)).map(lambda ns: Subject(kind="ServiceAccount", name="bot", namespace=ns)),
)
bound = st.lists(subject, max_size=3).map(tuple)
policies = st.one_of(
    st.builds(
        lambda name, rules: ClusterRole(metadata=ObjectMeta(name=name), rules=rules),
        names,
        st.lists(rules, max_size=3).map(tuple),
    ),
    st.builds(
        lambda ns, name, rules: Role(metadata=ObjectMeta(namespace=ns, name=name), rules=rules),
        st.sampled_from(SPACES),
        names,
        st.lists(rules, max_size=3).map(tuple),
    ),
    st.builds(
        lambda name, to, subjects: ClusterRoleBinding(
            metadata=ObjectMeta(name=name), roleRef=RoleRef(kind="ClusterRole", name=to), subjects=subjects
        ),
        names,
        names,
        bound,
    ),
    st.builds(
        lambda ns, name, kind, to, subjects: RoleBinding(
            metadata=ObjectMeta(namespace=ns, name=name),
            roleRef=RoleRef(kind=kind, name=to),
            subjects=subjects,
        ),
        st.sampled_from(SPACES),
        names,
        st.sampled_from(("Role", "ClusterRole")),
        names,
        bound,
    ),
)
users = st.builds(lambda name, groups: User(name, groups=groups), st.sampled_from(PEOPLE), some(TEAMS))
asked = st.builds(
    Attributes,
    users,
    st.sampled_from(("get", "list", "watch")),
    st.sampled_from(("", "apps")),
    st.sampled_from(("pods", "nodes")),
    st.sampled_from(("", "log")),
    st.sampled_from(("", *SPACES)),
    st.sampled_from(("", *NAMES)),
) | st.builds(
    lambda user, verb, path: Attributes(user, verb, path=path),
    users,
    st.sampled_from(("get", "list")),
    st.sampled_from(("/api", "/api/v1", "/apis")),
)
changes = st.lists(st.tuples(st.sampled_from(("put", "put", "put", "remove")), policies), max_size=12)


@settings(max_examples=150, deadline=None)
@given(changes, st.lists(asked, min_size=1, max_size=6))
def test_the_index_answers_like_plain_evaluation(
    changes: list[tuple[str, Policy]], questions: list[Attributes]
) -> None:
    rbac = RBACAuthorizer()
    there: dict[tuple[type, str, str], Policy] = {}
    for verb, obj in changes:
        getattr(rbac, verb)(obj)
        if verb == "put":
            there[type(obj), *obj.key] = obj
        else:
            there.pop((type(obj), *obj.key), None)
        for question in questions:
            # Asked after every change, so that what was remembered before it would show.
            assert rbac.authorize(question).allowed is plainly(there.values(), question)
