"""root-ca-certificate-publisher, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import AlreadyExists, ApiError, Cause, Forbidden, NotFound
from steersman.api.kinds import Namespace, NamespaceStatus, ObjectMeta
from steersman.api.kinds.config import CONFIGMAPS, ConfigMap
from steersman.api.scheme import Key
from steersman.controllers.rootcacertpublisher import DESCRIPTION, DESCRIPTION_TEXT, NAME, controller
from steersman.intent.actions import Action, Create, FileUnreadable, ReadFile, Update
from steersman.intent.controller import Change
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = ConfigMap(
    metadata=ObjectMeta(name=NAME, namespace="web", annotations={DESCRIPTION: DESCRIPTION_TEXT}),
    data={"ca.crt": "CA"},
)


def namespace(phase: str = "Active") -> Namespace:
    return Namespace(metadata=ObjectMeta(name="web"), status=NamespaceStatus(phase=phase))


def look(
    *objects: Namespace | ConfigMap, create: object = None, content: bytes = b"CA"
) -> tuple[list[Action[Any]], Verdict]:
    configured = controller.configured(Settings(flags={"root-ca-file": "/etc/ca.crt"}))
    assert configured is not None
    seen = configured.see(StaticCaches(configured, *objects), Key("", "web"))
    assert seen is not None
    answers: dict[type[Action[Any]], object] = {ReadFile: content}
    if create is not None:
        answers[Create] = create
    actions, verdict = walk(configured.decide(seen, NOW), answers)
    return [action for action in actions if action != ReadFile("/etc/ca.crt")], verdict


def test_an_active_namespace_gets_the_bundle() -> None:
    assert look(namespace()) == ([Create(CONFIGMAPS, "web", WANTED)], Rest("ConfigMap created"))


def test_a_namespace_that_goes_gets_nothing() -> None:
    assert look(namespace("Terminating"))[0] == []


def test_what_somebody_changed_is_put_right_and_what_they_added_stays() -> None:
    meta = ObjectMeta(name=NAME, namespace="web", labels={"a": "b"}, annotations={"mine": "too"})
    changed = ConfigMap(metadata=meta, data={"ca.crt": "CA", "extra": "no"}, binaryData={"b": "AA=="})
    (update,), verdict = look(namespace(), changed)
    assert isinstance(update, Update)
    assert update.target.data == {"ca.crt": "CA"}
    assert update.target.binaryData == {"b": "AA=="}
    assert update.target.metadata.labels == {"a": "b"}
    assert update.target.metadata.annotations == {"mine": "too", DESCRIPTION: DESCRIPTION_TEXT}
    assert verdict == Rest("ConfigMap updated")


def test_a_description_of_ones_own_is_respected() -> None:
    meta = ObjectMeta(name=NAME, namespace="web", annotations={DESCRIPTION: "ours"})
    assert look(namespace(), ConfigMap(metadata=meta, data={"ca.crt": "CA"}))[0] == []


@pytest.mark.parametrize(
    ("error", "because"),
    [
        (NotFound("no namespace"), "namespace gone"),
        (Forbidden("going", causes=(Cause("NamespaceTerminating", "", ""),)), "namespace terminating"),
    ],
)
def test_a_namespace_that_is_in_motion_is_no_error(error: ApiError, because: str) -> None:
    assert look(namespace(), create=error)[1] == Rest(because)


def test_a_configmap_that_the_cache_does_not_show_yet_is_looked_at_again() -> None:
    # Its addition is no reason for a round, and its content may be wrong.
    with pytest.raises(AlreadyExists):
        look(namespace(), create=AlreadyExists("there"))


def test_a_bundle_with_characters_that_are_not_utf_8_is_published() -> None:
    (create,), _ = look(namespace(), content=b"# caf\xe9\nCA")
    assert isinstance(create, Create)
    assert isinstance(create.body, ConfigMap)
    assert create.body.data == {"ca.crt": "# caf\ufffd\nCA"}


def test_a_file_that_cannot_be_read_fails_the_round() -> None:
    seen = controller.see(StaticCaches(controller, namespace()), Key("", "web"))
    assert seen is not None
    with pytest.raises(FileUnreadable):
        walk(controller.decide(seen, NOW), {ReadFile: FileUnreadable("cannot read it")})


# -- upstream's tables ----------------------------------------------------------------------------


def configmap(name: str = NAME, description: str = "", **data: str) -> ConfigMap:
    annotations = {DESCRIPTION: description} if description else {}
    meta = ObjectMeta(name=name, namespace="web", resourceVersion="1", annotations=annotations)
    return ConfigMap(metadata=meta, data={key.replace("_", "."): value for key, value in data.items()})


PUBLISHED = configmap(ca_crt="CA")
ADDED = configmap(ca_crt="CA", test="test")
MODIFIED = configmap(ca_crt="abc")


@pytest.mark.parametrize(
    ("change", "existing", "expected"),
    [
        (Change(None, namespace()), (), [Create]),
        (Change(PUBLISHED, None), (), [Create]),
        (Change(PUBLISHED, ADDED), (ADDED,), [Update]),
        (Change(PUBLISHED, MODIFIED), (MODIFIED,), [Update]),
        (Change(namespace(), namespace("Terminating")), (), []),
        (Change(None, PUBLISHED), (PUBLISHED,), None),
    ],
    ids=[
        "namespace added",
        "ConfigMap deleted",
        "field added",
        "field modified",
        "namespace terminating",
        "ConfigMap added",
    ],
)
def test_a_change_leads_to_these_writes(
    change: Change[Any], existing: tuple[ConfigMap, ...], expected: list[type[Action[Any]]] | None
) -> None:
    configured = controller.configured(Settings(flags={"root-ca-file": "ca.crt"}))
    assert configured is not None
    of_namespace = isinstance(change.obj, Namespace)
    where = change.obj if of_namespace else namespace()
    caches = StaticCaches(configured, where, *existing)
    keys = list(configured.watches[0 if of_namespace else 1].to(caches, change))
    if expected is None:
        assert keys == []
        return
    seen = configured.see(caches, keys[0])
    assert seen is not None
    actions, _ = walk(configured.decide(seen, NOW), {ReadFile: b"CA"})
    assert [type(action) for action in actions if not isinstance(action, ReadFile)] == expected


def test_configmaps_of_other_names_are_not_watched() -> None:
    assert controller.watches[1].kind.fields == f"metadata.name={NAME}"


@pytest.mark.parametrize(
    ("description", "updated"), [("", True), (DESCRIPTION_TEXT, False), ("different", False)]
)
def test_a_configmap_is_updated_once_for_its_description(description: str, updated: bool) -> None:
    actions, _ = look(namespace(), configmap(description=description, ca_crt="CA"))
    assert [type(action) for action in actions] == [Update] * updated
    for update in actions:
        assert isinstance(update, Update)
        assert isinstance(update.target, ConfigMap)
        assert update.target.metadata.annotations == {DESCRIPTION: DESCRIPTION_TEXT}
        assert look(namespace(), update.target)[0] == []
