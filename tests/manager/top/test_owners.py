"""Owners of fields: two clients that the trace cannot tell apart."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from steersman.manager.top.model import advance
from steersman.manager.top.owners import (
    MAX_SUSPECTS,
    Contest,
    Suspect,
    compare,
    name_fights,
    owners_of,
    suspects,
)
from tests.harness.top import NOON, answer, changed, controller, fight, round_

WEB = Suspect("deployments.apps", "Deployment", "shop", "web")


def managed(*entries: tuple[str, dict[str, Any]], subresource: str = "") -> dict[str, Any]:
    fields = [
        {"manager": manager, "fieldsV1": owned, "subresource": subresource} for manager, owned in entries
    ]
    return {"metadata": {"managedFields": fields}}


def contest(*looks: str) -> Contest:
    """A contest about spec.replicas: the managers that looks a second apart see."""
    found: Contest | None = None
    for second, manager in enumerate(looks):
        owners = owners_of(managed((manager, {"f:spec": {"f:replicas": {}}})))
        found = compare(found, owners, NOON + timedelta(seconds=second))
    assert found is not None
    return found


def test_owners_are_managers_of_fields_outside_of_status_and_metadata() -> None:
    owned = {
        "f:spec": {"f:replicas": {}, "f:template": {".": {}, "f:spec": {"f:x": {}}}},
        "f:metadata": {"f:labels": {}},
    }
    assert owners_of(managed(("helm", owned))) == {"spec.replicas": "helm", "spec.template.spec.x": "helm"}
    assert owners_of(managed(("kubelet", {"f:spec": {"f:a": {}}}), subresource="status")) == {}
    assert owners_of({"metadata": {}}) == {}


def test_suspects_are_objects_of_fights_and_those_that_others_change_often() -> None:
    rounds = [round_(number, causes=[changed("db", version=number)]) for number in range(1, 5)]
    rounds += [round_(number, causes=[changed("own", by=1, version=number)]) for number in range(5, 10)]
    rounds += [round_(number, causes=[changed("old", version=number)], ago=90) for number in range(10, 15)]
    rounds += [round_(number, causes=[changed("once", version=3)]) for number in range(15, 20)]
    picture = advance(None, answer(controller(), rounds=rounds, fights=[fight("another client", "b")]))
    assert suspects(picture) == [WEB, WEB._replace(name="db")]
    many = [fight("a", "b", name=str(number)) for number in range(9)]
    assert len(suspects(advance(None, answer(fights=many)))) == MAX_SUSPECTS


def test_a_field_that_goes_to_and_fro_is_a_fight_of_its_managers() -> None:
    now = NOON + timedelta(seconds=9)
    (row,) = name_fights((), {WEB: contest("helm", "argocd", "argocd", "helm")}, now)
    assert (row.object, row.between, row.turns) == (
        "Deployment shop/web spec.replicas",
        "argocd <-> helm",
        2,
    )
    assert (row.seconds, row.ago) == (3.0, 6.0)


def test_one_change_of_owner_is_no_fight_and_an_old_one_is_over() -> None:
    assert name_fights((), {WEB: contest("helm", "argocd", "argocd")}, NOON) == ()
    assert name_fights((), {WEB: contest("helm")}, NOON) == ()
    assert name_fights((), {WEB: contest("a", "b", "a")}, NOON + timedelta(minutes=11)) == ()


def test_another_client_of_a_known_fight_gets_its_name() -> None:
    known = advance(None, answer(fights=[fight("another client", "deployment-controller")])).fights
    (row,) = name_fights(known, {WEB: contest("kubectl", "steersman")}, NOON)
    assert row.object == "Deployment shop/web spec.replicas"
    assert row.between == "another client <-> deployment (kubectl, steersman)"


def test_a_field_that_managers_share_is_not_fought_over() -> None:
    owned: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    assert owners_of(managed(("helm", owned), ("argocd", owned))) == {}
    assert owners_of(managed(("helm", owned), ("helm", owned))) == {"spec.replicas": "helm"}
