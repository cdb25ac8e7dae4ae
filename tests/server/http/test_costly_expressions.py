"""Requests go on while the expressions of another use up their budget."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from tests.server.http.conftest import Plane
from tests.server.test_evaluation import CONFIGMAPS, CUBIC, LARGE, OUT_OF_BUDGET

ROOT = "/apis/admissionregistration.k8s.io/v1"


async def _post(session: aiohttp.ClientSession, path: str, document: dict[str, Any]) -> tuple[int, Any]:
    async with session.post(path, json=document) as answer:
        return answer.status, await answer.json()


async def test_readyz_answers_while_a_policy_uses_up_its_budget(plane: Plane) -> None:
    async with plane.session() as session:
        spec = {
            "matchConstraints": {"resourceRules": [CONFIGMAPS]},
            "validations": [{"expression": CUBIC}] * 25,
        }
        made = {"metadata": {"name": "p"}, "spec": spec}
        assert (await _post(session, f"{ROOT}/validatingadmissionpolicies", made))[0] == 201
        bound = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
        assert (await _post(session, f"{ROOT}/validatingadmissionpolicybindings", bound))[0] == 201
        path = "/api/v1/namespaces/default/configmaps"
        costly = asyncio.create_task(_post(session, path, {"metadata": {"name": "c"}, "data": LARGE}))
        answered = 0
        while not costly.done():
            async with session.get("/readyz") as ready:
                assert ready.status == 200
                answered += 1
        status, refusal = await costly
        assert (status, OUT_OF_BUDGET in refusal["message"]) == (422, True)
        assert answered > 3
