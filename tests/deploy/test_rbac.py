"""The roles that are published: the one for plan and shadow can read, and nothing else."""

from __future__ import annotations

from pathlib import Path

import yaml

ROLE = Path(__file__).parents[2] / "deploy" / "rbac-read-only.yaml"


def test_the_read_only_role_has_no_verb_that_writes() -> None:
    documents = [each for each in yaml.safe_load_all(ROLE.read_text()) if each]
    assert [each["kind"] for each in documents] == ["ClusterRole"]
    rules = documents[0]["rules"]
    assert rules
    for rule in rules:
        allowed = {"get"} if "nonResourceURLs" in rule else {"get", "list", "watch"}
        assert set(rule["verbs"]) <= allowed


def test_the_read_only_role_can_neither_run_commands_nor_pass_requests_on() -> None:
    # `get` of these is enough for a WebSocket to a container, and for requests to kubelets, pods and Services.
    [role] = [each for each in yaml.safe_load_all(ROLE.read_text()) if each]
    for rule in role["rules"]:
        if {"", "*"} & set(rule["apiGroups"]):
            for resource in rule["resources"]:
                assert resource == "*/scale" or ("*" not in resource and "/" not in resource), resource
