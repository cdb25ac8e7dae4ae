"""kube-apiserver-serving-clustertrustbundle-publisher, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import AlreadyExists, Forbidden, NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.certificates import CLUSTERTRUSTBUNDLES, ClusterTrustBundle, ClusterTrustBundleSpec
from steersman.controllers.clustertrustbundlepublisher import ROUND, SIGNER, bundle_name, controller
from steersman.intent.actions import Action, Create, Delete, ReadFile, Update
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GATE = {"ClusterTrustBundle": True}


def bundle(content: str, name: str = "", version: str = "") -> ClusterTrustBundle:
    meta = ObjectMeta(name=name or bundle_name(content.encode()), resourceVersion=version)
    return ClusterTrustBundle(
        metadata=meta, spec=ClusterTrustBundleSpec(signerName=SIGNER, trustBundle=content)
    )


def look(
    *bundles: ClusterTrustBundle, content: bytes = b"CA", **answers: Any
) -> tuple[list[Action[Any]], Verdict]:
    configured = controller.configured(Settings({"root-ca-file": "ca.crt"}, GATE))
    assert configured is not None
    seen = configured.see(StaticCaches(configured, *bundles), ROUND)
    assert seen is not None
    given = {
        ReadFile: content,
        **{{"create": Create, "delete": Delete}[key]: value for key, value in answers.items()},
    }
    actions, verdict = walk(configured.decide(seen, NOW), given)  # type: ignore[arg-type]
    return [action for action in actions if not isinstance(action, ReadFile)], verdict


def test_the_name_is_that_of_the_content() -> None:
    assert bundle_name(b"CA").startswith("kubernetes.io:kube-apiserver-serving:")
    assert len(bundle_name(b"CA").rsplit(":", 1)[1]) == 24
    assert bundle_name(b"CA") != bundle_name(b"another")


def test_a_missing_bundle_is_created() -> None:
    assert look() == ([Create(CLUSTERTRUSTBUNDLES, "", bundle("CA"))], Rest("ClusterTrustBundle published"))


def test_a_bundle_somebody_changed_is_put_right() -> None:
    changed = bundle("other", bundle_name(b"CA"), "7")
    assert look(changed)[0] == [Update(bundle("CA", version="7"))]


def test_bundles_of_earlier_contents_go_when_the_new_one_is_there() -> None:
    old = bundle("old")
    assert look(old)[0] == [Create(CLUSTERTRUSTBUNDLES, "", bundle("CA")), Delete(old)]
    assert look(old, create=AlreadyExists("there"))[0] == [Create(CLUSTERTRUSTBUNDLES, "", bundle("CA"))]


def test_a_bundle_that_somebody_else_removed_is_no_error() -> None:
    assert look(bundle("CA"), bundle("old"), delete=NotFound("gone"))[1] == Rest(
        "ClusterTrustBundle published"
    )


def test_without_a_ca_nothing_is_published() -> None:
    assert look(content=b"") == ([], Rest("CA file is empty"))
    assert controller.configured(Settings(gates=GATE)) is None


@pytest.mark.parametrize("gates", [{}, {"ClusterTrustBundle": False}])
def test_it_runs_behind_its_gate(gates: dict[str, bool]) -> None:
    assert controller.configured(Settings({"root-ca-file": "ca.crt"}, gates)) is None


# -- upstream's table -----------------------------------------------------------------------------

RIGHT, WRONG = bundle("CA"), bundle("olddata", bundle_name(b"CA"))
SECOND = bundle("CA", "kubernetes.io:kube-apiserver-serving:name2")
CREATE = Create(CLUSTERTRUSTBUNDLES, "", bundle("CA"))


@pytest.mark.parametrize(
    ("bundles", "expected"),
    [
        ((), [CREATE]),
        ((WRONG,), [Update(RIGHT)]),
        ((RIGHT, SECOND), [Delete(SECOND)]),
        ((WRONG, SECOND), [Update(RIGHT), Delete(SECOND)]),
        ((SECOND,), [CREATE, Delete(SECOND)]),
        ((RIGHT,), []),
    ],
    ids=["none", "other content", "two", "two, one of other content", "another name", "as it should be"],
)
def test_the_bundles_of_the_signer_become_the_one_of_the_content(
    bundles: tuple[ClusterTrustBundle, ...], expected: list[Action[Any]]
) -> None:
    assert look(*bundles)[0] == expected


def test_bundles_of_other_signers_are_not_watched() -> None:
    assert controller.watches[0].kind.fields == f"spec.signerName={SIGNER}"


def test_a_bundle_that_cannot_be_deleted_does_not_keep_others_from_it() -> None:
    configured = controller.configured(Settings({"root-ca-file": "ca.crt"}, GATE))
    assert configured is not None
    seen = configured.see(StaticCaches(configured, RIGHT, bundle("old"), bundle("older")), ROUND)
    assert seen is not None
    recorded: list[Action[Any]] = []
    answers: dict[type[Action[Any]], Any] = {ReadFile: b"CA", Delete: [Forbidden("no")]}
    with pytest.raises(Forbidden):
        walk(configured.decide(seen, NOW), answers, recorded=recorded)
    assert sum(isinstance(action, Delete) for action in recorded) == 2
