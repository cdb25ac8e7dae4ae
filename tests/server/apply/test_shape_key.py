"""New objects that are alike share what they own; those that only look alike do not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.generated.core_v1 import ConfigMap, Pod, Secret
from steersman.api.generated.rbac_v1 import Role
from steersman.server import apply as ssa
from steersman.server.apply import field_set
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.shape_key import shape_key
from steersman.server.codec.convert import to_struct
from steersman.server.registry.resources import Registry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REGISTRY = Registry()
PODS = field_manager_for(REGISTRY.find("", "v1", "pods"))
CONFIGMAPS = field_manager_for(REGISTRY.find("", "v1", "configmaps"))
OWNINGS = {
    Pod: PODS,
    ConfigMap: CONFIGMAPS,
    Secret: field_manager_for(REGISTRY.find("", "v1", "secrets")),
    Role: field_manager_for(REGISTRY.find("rbac.authorization.k8s.io", "v1", "roles")),
}

words = st.sampled_from(("a", "b", "c.d/e"))
maps = st.none() | st.dictionaries(words, words, max_size=3)
owners = st.lists(
    st.builds(
        lambda uid, controller: (
            {"apiVersion": "v1", "kind": "X", "name": "x", "uid": uid}
            | ({} if controller is None else {"controller": controller})
        ),
        words,
        st.none() | st.booleans(),
    ),
    max_size=2,
    unique_by=lambda owner: owner["uid"],
)
metadata = st.fixed_dictionaries(
    {"name": words},
    optional={
        "labels": maps,
        "annotations": maps,
        "finalizers": st.lists(words, max_size=2, unique=True),
        "ownerReferences": owners,
        "generateName": words,
        "deletionGracePeriodSeconds": st.just(3),
        "generation": st.just(7),
        "uid": words,
    },
)
containers = st.lists(
    st.fixed_dictionaries({"name": words, "image": words}, optional={"stdin": st.booleans()}),
    min_size=1,
    max_size=2,
    unique_by=lambda container: container["name"],
)
documents = st.one_of(
    st.tuples(
        st.just(Pod),
        st.fixed_dictionaries(
            {"metadata": metadata},
            optional={
                "spec": st.fixed_dictionaries({"containers": containers}, optional={"nodeName": words}),
                "status": st.fixed_dictionaries({}, optional={"phase": words}),
            },
        ),
    ),
    st.tuples(
        st.just(ConfigMap),
        st.fixed_dictionaries(
            {"metadata": metadata},
            optional={"data": maps, "immutable": st.booleans(), "binaryData": st.just({"a": "YQ=="})},
        ),
    ),
    st.tuples(
        st.just(Secret),
        st.fixed_dictionaries(
            {"metadata": metadata}, optional={"type": words, "data": st.just({"a": "YQ=="})}
        ),
    ),
    st.tuples(
        st.just(Role),
        st.fixed_dictionaries(
            {"metadata": metadata},
            optional={
                "rules": st.lists(st.fixed_dictionaries({"verbs": st.lists(words, max_size=2)}), max_size=2)
            },
        ),
    ),
)


def worked_out(obj: Any) -> Any:
    own = OWNINGS[type(obj)]
    return ssa.track(
        None, own.document(obj), "me", {}, resource_schema=own.resource_schema, now=NOW, empty=own.empty
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(documents, min_size=1, max_size=8))
def test_owners_that_are_remembered_are_those_that_would_be_worked_out(
    made: list[tuple[type[Any], dict[str, Any]]],
) -> None:
    for type_, document in made:
        obj = to_struct(type_, msgspec.json.encode(document))
        assert OWNINGS[type_].managed_when_new(obj, "me", NOW) == worked_out(obj)


def pod(name: str, **labels: str) -> Any:
    return to_struct(
        Pod, {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "main"}]}}
    )


def test_pods_of_one_template_share_one_set() -> None:
    first = pod("a", app="1")
    second = replace(pod("b", app="2"), spec=first.spec)
    (one,) = PODS.managed_when_new(first, "me", NOW).values()
    (other,) = PODS.managed_when_new(second, "other", NOW).values()
    assert one.fields is other.fields
    assert field_set.to_fields_v1(one.fields) is field_set.to_fields_v1(other.fields)


def test_objects_with_other_keys_are_not_alike() -> None:
    blank = ConfigMap()
    data = [{"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": "1"}, {}]
    objects = [to_struct(ConfigMap, {"metadata": {"name": "c"}, "data": each}) for each in data]
    keys = [shape_key(obj, blank).key for obj in objects]
    assert keys[0] == keys[1]
    assert len(dict.fromkeys(keys)) == 4
