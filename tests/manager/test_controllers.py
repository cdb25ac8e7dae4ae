"""``steersman controllers``: the table of controllers, and that every registered one is covered by tests."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.manager import cli
from steersman.manager.controller_selection import KNOWN_CONTROLLERS
from steersman.manager.controller_table import controller_table, count, coverage, write_coverage
from steersman.manager.output import coloured
from steersman.server.server import Server
from steersman.sim.world import World
from tests.harness.controller_coverage import COUNT, COUNTED, COVERAGE, compared, derived, renewed

RENEW = "run `python tests/harness/controller_coverage.py --renew`"


@pytest.fixture(scope="module")
def server() -> Server:
    with World() as world:
        return world.server


# -- coverage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda controller: controller.name)
def test_a_controller_has_rows_a_scenario_and_a_comparison_with_the_original(
    controller: Controller[Any], server: Server
) -> None:
    tests = derived_tests()[controller.name]
    needed = {"rows": tests.rows, "scenarios": tests.scenarios, "comparisons": tests.comparisons}
    serves = server.registry.serves
    if not all(serves(kind.group, kind.version, kind.plural) for kind in controller.required_kinds):
        del needed["scenarios"]  # the embedded server has nothing to run it on
    if controller.cloud is not None:
        del needed["comparisons"]  # kube-controller-manager has no cloud provider
    lacking = tuple(part for part, names in needed.items() if not names)
    assert lacking == (), (
        f"{controller.name} lacks {lacking}: tests/harness/controller_coverage.py says what counts"
    )


def derived_tests() -> dict[str, Any]:
    if not _derived:
        _derived.update(derived())
    return _derived


_derived: dict[str, Any] = {}


def test_the_tests_that_the_program_names_are_those_of_the_source_tree() -> None:
    assert COVERAGE.read_text() == write_coverage(derived_tests()), RENEW
    assert coverage() == derived_tests()


@pytest.mark.parametrize("path", COUNTED, ids=lambda path: path.name)
def test_documents_count_the_controllers_and_show_the_table(path: Any) -> None:
    text = path.read_text()
    assert COUNT.findall(text), f"{path.name} says how many controllers there are"
    assert text == renewed(path), RENEW


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('both(tell, "x", controllers=("a", "b"))', {"a", "b"}),
        ('names = ("a",)\ndef ends(both):\n    return both(tell, "x", controllers=names)', {"a"}),
        ('pytestmark = pytest.mark.compares("a", "b")', {"a", "b"}),
        ('@pytest.mark.compares("a")\ndef test_x(): ...', {"a"}),
        ('plane.manager("--controllers=a")', set()),
        ('start(controllers=("a",))', set()),
    ],
)
def test_a_comparison_is_told_by_its_controllers(text: str, names: set[str]) -> None:
    assert compared(ast.parse(text)) == names


# -- facts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda controller: controller.name)
def test_a_declaration_agrees_with_upstreams_list(controller: Controller[Any]) -> None:
    known = next(each for each in KNOWN_CONTROLLERS if each.name == controller.name)
    assert (controller.service_account or controller.name) == known.service_account
    gates = set(controller.feature_gates)
    if controller.part_of is not None:
        gates.add(controller.part_of.unless)
    assert set(known.gates) <= gates
    assert (known.default == "cloud") == (controller.cloud is not None)


def test_every_controller_has_a_role_and_every_state_is_told_apart() -> None:
    rows = controller_table()
    assert len(rows) == 52
    assert [row.name for row in rows if not row.roles] == []
    states = {row.name: row.state for row in rows}
    assert states["job-controller"] == "on"
    assert states["token-cleaner-controller"] == "off"
    assert states["service-lb-controller"] == "cloud"
    assert states["storageversion-garbage-collector-controller"] == "gate"
    assert states["node-ipam-controller"] == "flags"
    assert states["root-ca-certificate-publisher-controller"] == "on", "the CA is that of the kubeconfig"
    missing = [name for name, state in states.items() if state == "missing"]
    assert set(missing) == {row.name for row in rows} - {each.name for each in CONTROLLERS}
    assert count() == f"{52 - len(missing)} of 52"


def test_roles_of_a_namespace_and_those_behind_a_gate_are_found() -> None:
    rows = {row.name: row for row in controller_table()}
    signer = [(role.kind, role.namespace) for role in rows["bootstrap-signer-controller"].roles]
    assert sorted(signer) == [("Role", "kube-public"), ("Role", "kube-system")]
    migrator = rows["storage-version-migrator-controller"].roles[0]
    assert migrator.gated
    assert rows["serviceaccount-token-controller"].roles[0].name == "system:kube-controller-manager"
    certificates = rows["certificatesigningrequest-signing-controller"].roles[0].grants
    assert any(
        grant.resource.startswith("signers.certificates.k8s.io kubernetes.io/") for grant in certificates
    )


# -- the verb ---------------------------------------------------------------------------------


def test_the_table_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["controllers"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "STATE", "PURPOSE"]
    assert [line.split()[0] for line in lines[:52]] == [each.name for each in KNOWN_CONTROLLERS]
    assert lines[-1].startswith(f"{count()} controllers")
    assert "\033" not in "".join(lines)


def test_every_controller_says_what_it_is_for_in_the_table_in_help_and_in_the_documents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = Path(__file__).parents[2]
    documents = [(root / "docs" / "reference" / "controllers.md").read_text()]
    for words in (["controllers"], ["run", "--help"]):
        assert cli.main(words) == 0
        documents.append(" ".join(capsys.readouterr().out.split()))
    for each in KNOWN_CONTROLLERS:
        assert each.purpose[0].isupper()
        assert each.purpose.endswith(".")
        assert "\t" not in each.purpose
        assert [text for text in documents if each.purpose not in text] == [], each.name


def test_wide_adds_aliases_flags_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["controllers", "-o", "wide"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("job-controller"))
    assert line.split()[-3:] == [
        "job",
        "concurrent-job-syncs",
        "events,jobs,jobs/finalizers,jobs/status,pods",
    ]


@pytest.mark.parametrize("name", ["podgc", "pod-garbage-collector-controller", "pod-garbage-collector"])
def test_one_is_shown_in_full_by_name_or_alias(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.main(["controllers", name]) == 0
    out = capsys.readouterr().out
    assert out.startswith("pod-garbage-collector-controller\n")
    assert re.search(r"--terminated-pod-gc-threshold +12500", out)
    assert re.search(r"pods/status +patch", out)
    assert "tests/controllers/test_podgc.py" in out
    assert "orphaned-pod" in out


def test_programs_read_json_and_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["controllers", "-o", "json"]) == 0
    documents = json.loads(capsys.readouterr().out)
    assert cli.main(["controllers", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == documents
    assert cli.main(["controllers", "ttl", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) in documents
    assert all(
        document["serviceAccount"]
        for document in documents
        if document["name"] != "serviceaccount-token-controller"
    )


def test_a_name_that_is_none_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["controllers", "jobs"]) == 1
    assert capsys.readouterr().err == "Error: unknown controller 'jobs'; did you mean 'job'?\n"
    assert cli.main(["controllers", "zzzzzz"]) == 1
    assert "`steersman controllers` lists them" in capsys.readouterr().err


def test_help_explains_the_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["controllers", "--help"]) == 0
    out = capsys.readouterr().out
    assert "STATE is one of" in out
    assert "runs where --controllers names it" in out


@pytest.mark.parametrize(
    ("terminal", "environ", "colours"),
    [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals(terminal: bool, environ: dict[str, str], colours: bool) -> None:
    assert coloured(terminal, environ) == colours
