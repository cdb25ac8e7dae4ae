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


def look(*objects: Namespace | ConfigMap, create: object = None) -> tuple[list[Action[object]], Verdict]:
    configured = controller.configured(Settings(flags={"root-ca-file": "/etc/ca.crt"}))
    assert configured is not None
    seen = configured.see(StaticCaches(configured, *objects), Key("", "web"))
    assert seen is not None
    answers: dict[type[Action[Any]], object] = {ReadFile: b"CA"}
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
        (AlreadyExists("there"), "ConfigMap already exists"),
        (NotFound("no namespace"), "namespace gone"),
        (Forbidden("going", causes=(Cause("NamespaceTerminating", "", ""),)), "namespace terminating"),
    ],
)
def test_a_namespace_that_is_in_motion_is_no_error(error: ApiError, because: str) -> None:
    assert look(namespace(), create=error)[1] == Rest(because)


def test_a_file_that_cannot_be_read_fails_the_round() -> None:
    seen = controller.see(StaticCaches(controller, namespace()), Key("", "web"))
    assert seen is not None
    with pytest.raises(FileUnreadable):
        walk(controller.decide(seen, NOW), {ReadFile: FileUnreadable("cannot read it")})
