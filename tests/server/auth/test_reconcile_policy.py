"""Keeping the bootstrap policy: what is missing comes back, what was added stays, who opted out is left alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.generated.meta_v1 import LabelSelector, ObjectMeta
from steersman.api.generated.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleRef,
    Subject,
)
from steersman.server.auth.bootstrap_policy import AUTOUPDATE, ReconcileStep, bootstrap_policy, reconcile
from steersman.server.auth.rbac import Policy

META = ObjectMeta(name="x", labels={"l": "1"}, annotations={AUTOUPDATE: "true"})
GET, LIST, DELETE = (
    PolicyRule(verbs=(verb,), apiGroups=("",), resources=("pods",)) for verb in ("get", "list", "delete")
)
ANN, BOB, CAT = (Subject(kind="User", name=name) for name in ("ann", "bob", "cat"))
ROLE = ClusterRole(metadata=META, rules=(GET, LIST))
BINDING = ClusterRoleBinding(
    metadata=META, roleRef=RoleRef(kind="ClusterRole", name="r"), subjects=(ANN, BOB)
)


def selecting(*labels: str) -> AggregationRule:
    return AggregationRule(
        clusterRoleSelectors=tuple(LabelSelector(matchLabels={one: "1"}) for one in labels)
    )


def changed(obj: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(obj, **fields)


def remarked(obj: Any, **fields: Any) -> Any:
    return changed(obj, metadata=changed(obj.metadata, **fields))


GATHERS = changed(ROLE, aggregationRule=selecting("a", "b"))


@pytest.mark.parametrize(
    ("expected", "existing", "steps"),
    [
        (ROLE, None, [ReconcileStep("create", ROLE)]),
        (ROLE, ROLE, []),
        # Rules are added one permission each, as upstream does.
        (ROLE, changed(ROLE, rules=(GET,)), [ReconcileStep("update", ROLE)]),
        (ROLE, changed(ROLE, rules=(GET, LIST, DELETE)), []),
        (
            ROLE,
            changed(ROLE, rules=(DELETE,)),
            [ReconcileStep("update", changed(ROLE, rules=(DELETE, GET, LIST)))],
        ),
        (ROLE, changed(ROLE, rules=None), [ReconcileStep("update", ROLE)]),
        # Labels and annotations: theirs win.
        (ROLE, remarked(ROLE, labels={}), [ReconcileStep("update", ROLE)]),
        (ROLE, remarked(ROLE, labels={"l": "2", "m": "3"}), []),
        # Opting out.
        (ROLE, remarked(changed(ROLE, rules=()), annotations={AUTOUPDATE: "false"}), []),
        # Aggregation: selectors are kept, rules are the controller's.
        (GATHERS, changed(GATHERS, rules=()), []),
        (GATHERS, changed(GATHERS, aggregationRule=selecting("a", "b", "c")), []),
        (
            GATHERS,
            changed(GATHERS, aggregationRule=selecting("c", "b")),
            [ReconcileStep("update", changed(GATHERS, aggregationRule=selecting("c", "b", "a")))],
        ),
        (GATHERS, changed(GATHERS, aggregationRule=None), [ReconcileStep("update", GATHERS)]),
        (ROLE, GATHERS, [ReconcileStep("update", ROLE)]),
        # Bindings.
        (BINDING, None, [ReconcileStep("create", BINDING)]),
        (BINDING, changed(BINDING, subjects=(BOB, ANN, CAT)), []),
        (
            BINDING,
            changed(BINDING, subjects=(CAT,)),
            [ReconcileStep("update", changed(BINDING, subjects=(CAT, ANN, BOB)))],
        ),
        (
            BINDING,
            changed(BINDING, roleRef=RoleRef(kind="ClusterRole", name="other")),
            [ReconcileStep("recreate", BINDING)],
        ),
        (
            BINDING,
            remarked(changed(BINDING, roleRef=RoleRef(name="other")), annotations={AUTOUPDATE: "false"}),
            [],
        ),
    ],
)
def test_what_is_there_is_brought_up_to_what_is_expected(
    expected: Policy, existing: Policy | None, steps: list[ReconcileStep]
) -> None:
    assert list(reconcile(lambda obj: existing, [expected])) == steps


def test_a_fresh_store_gets_everything_and_a_second_start_writes_nothing() -> None:
    store: dict[tuple[type, str, str], Policy] = {}

    def find(obj: Policy) -> Policy | None:
        return store.get((type(obj), *obj.key))

    for step in reconcile(find):
        assert step.operation == "create"
        store[type(step.obj), *step.obj.key] = step.obj
    assert tuple(store.values()) == bootstrap_policy()
    assert list(reconcile(find)) == []
