"""Provisioning whose writes are refused: the claim says why, the failure is counted, and the round is repeated."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.errors import Conflict, Forbidden, NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.storage import PersistentVolumeClaim
from steersman.controllers.persistentvolume import decide, observe
from steersman.controllers.persistentvolume.metrics import (
    OPERATION_ERRORS,
    OPERATION_ERRORS_DEPRECATED,
)
from steersman.controllers.persistentvolume.seen import Config
from steersman.intent.actions import Action, DirectoryError, Emit, MakeDirectory, Read, Update
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec, Verdict
from steersman.testing.decision_driver import walk
from tests.controllers.persistentvolume.test_rows import HOST_PATH, NOW, caches_of, claim, storage_class

EXTERNAL = "vendor.com/my-volume"


def run(words: list[str], class_: str, answers: dict[Any, Any], recorded: list[Action[Any]]) -> Verdict:
    data = claim(["data", "uid", "1Gi", "Pending", f"class:{class_}", *words])
    node = Node(metadata=ObjectMeta(name="node1"))
    caches = caches_of(data, storage_class(class_), node)
    seen = observe(caches, data.key, Config(provisions_host_paths=True))
    assert seen is not None
    return walk(decide(seen, NOW), answers, recorded=recorded)[1]


def warnings(actions: list[Action[Any]]) -> list[tuple[str, str]]:
    return [
        (action.reason, action.message)
        for action in actions
        if isinstance(action, Emit) and action.type == "Warning"
    ]


def failures(provisioner: str) -> list[Measure]:
    labels = (provisioner, "provision")
    return [Measure(metric, labels=labels) for metric in (OPERATION_ERRORS, OPERATION_ERRORS_DEPRECATED)]


@pytest.mark.parametrize("error", [Conflict("changed"), Forbidden("denied")])
def test_a_claim_whose_provisioner_cannot_be_saved_says_why(error: Conflict | Forbidden) -> None:
    actions: list[Action[Any]] = []
    with pytest.raises(type(error)):
        run([], "external", {Update: error}, actions)
    assert warnings(actions) == [("ProvisioningFailed", f"Error saving claim: {error}")]
    assert [action for action in actions if isinstance(action, Measure)] == failures(EXTERNAL)


def test_the_event_about_an_external_provisioner_is_about_the_claim_that_names_it() -> None:
    actions: list[Action[Any]] = []
    run([], "external", {}, actions)
    (event,) = [action for action in actions if isinstance(action, Emit)]
    assert event.reason == "ExternalProvisioning"
    (written,) = [action.target for action in actions if isinstance(action, Update)]
    assert isinstance(event.about, PersistentVolumeClaim)
    assert event.about.metadata.annotations == written.metadata.annotations


def test_a_claim_for_a_directory_whose_provisioner_cannot_be_saved_is_only_counted() -> None:
    actions: list[Action[Any]] = []
    with pytest.raises(Conflict):
        run([], "gold", {Update: Conflict("changed")}, actions)
    assert warnings(actions) == []
    assert [action for action in actions if isinstance(action, Measure)] == failures(HOST_PATH)


def test_a_claim_says_why_no_directory_is_made_though_it_keeps_its_node() -> None:
    actions: list[Action[Any]] = []
    annotated = ["node:node1", f"provisioner:{HOST_PATH}"]
    answers = {
        Read: NotFound("not found"),
        MakeDirectory: DirectoryError("mkdir /tmp/hostpath_pv: read-only file system"),
        Update: Conflict("changed"),
    }
    with pytest.raises(InvalidSpec):
        run(annotated, "gold", answers, actions)
    why = 'Failed to provision volume with StorageClass "gold": mkdir /tmp/hostpath_pv: read-only file system'
    assert warnings(actions) == [("ProvisioningFailed", why)]
