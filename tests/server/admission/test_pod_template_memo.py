"""New pods: accounts, priorities, limits, and what is remembered of templates."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.generated.core_v1 import Pod
from steersman.server import admission
from steersman.server.auth.users import APISERVER
from steersman.server.codec.convert import to_struct
from steersman.server.server import AdmissionAttributes, Server
from tests.harness import verbs


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def test_a_pod_is_refused_until_its_account_exists(ask: Any) -> None:
    said = ask.forbidden_error("pods", pod(), "other")
    assert said == (
        'pods "p" is forbidden: error looking up service account other/default: '
        'serviceaccount "default" not found'
    )
    ask.create("serviceaccounts", {"metadata": {"name": "default"}}, "other")
    assert ask.create("pods", pod(), "other").spec.serviceAccountName == "default"


def test_what_is_remembered_of_a_template_is_forgotten_when_its_account_changes(ask: Any) -> None:
    template = to_struct(Pod, pod()).spec
    pods = ask.resource("pods")

    def create(name: str) -> Pod:
        body = replace(to_struct(Pod, pod(name)), spec=template)
        made: Pod = verbs.create(ask.server, pods, "default", body)
        return made

    first, second = create("a"), create("b")
    assert first.spec is second.spec
    assert [volume.name[:16] for volume in first.spec.volumes] == ["kube-api-access-"]
    ask.patch("serviceaccounts", "default", lambda old: replace(old, automountServiceAccountToken=False))
    assert create("c").spec.volumes == ()
    ask.delete("serviceaccounts", "default")
    with pytest.raises(Exception, match="error looking up service account"):
        create("d")


def test_a_fork_remembers_for_itself(ask: Any) -> None:
    ask.create("pods", pod("a"))
    fork = ask.server.fork()
    ask.delete("serviceaccounts", "default")
    made = verbs.create(fork, ask.resource("pods"), "default", to_struct(Pod, pod("b")))
    assert made.spec.serviceAccountName == "default"
    assert "error looking up" in ask.forbidden_error("pods", pod("b"))


def test_pull_secrets_come_from_the_account_unless_the_pod_has_its_own(ask: Any) -> None:
    account = {"metadata": {"name": "puller"}, "imagePullSecrets": [{"name": "registry"}]}
    ask.create("serviceaccounts", account)
    made = ask.create("pods", pod("a", serviceAccountName="puller"))
    assert [secret.name for secret in made.spec.imagePullSecrets] == ["registry"]
    own = pod("b", serviceAccountName="puller", imagePullSecrets=[{"name": "own"}])
    assert [secret.name for secret in ask.create("pods", own).spec.imagePullSecrets] == ["own"]


def test_an_account_may_insist_on_its_secrets(ask: Any) -> None:
    annotations = {"kubernetes.io/enforce-mountable-secrets": "true"}
    ask.create("serviceaccounts", {"metadata": {"name": "strict", "annotations": annotations}})
    volume = {"name": "v", "secret": {"secretName": "s"}}
    said = ask.forbidden_error("pods", pod(serviceAccountName="strict", volumes=[volume]))
    assert said == (
        'pods "p" is forbidden: volume with secret.secretName="s" is not allowed because service account '
        "strict does not reference that secret"
    )


def mirror(**spec: Any) -> dict[str, Any]:
    return {
        **pod(nodeName="n", **spec),
        "metadata": {"name": "m", "annotations": {"kubernetes.io/config.mirror": "x"}},
    }


TOKEN = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "default"}, "a mirror pod may not reference service accounts"),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            "a mirror pod may not reference secrets",
        ),
        ({"volumes": [TOKEN]}, "a mirror pod may not use ServiceAccountToken volume projections"),
    ],
)
def test_mirror_pods_refer_to_nothing_of_the_cluster(ask: Any, spec: dict[str, Any], why: str) -> None:
    assert ask.forbidden_error("pods", mirror(**spec)) == f'pods "m" is forbidden: {why}'


def test_a_mirror_pod_needs_no_account_and_gets_no_token(ask: Any) -> None:
    made = ask.create("pods", mirror(), "other")
    assert made.spec.volumes == ()
    assert made.spec.serviceAccountName == ""
    assert made.spec.priority == 0


def test_an_update_that_leaves_out_the_priority_keeps_it(ask: Any) -> None:
    ask.create("pods", pod(priorityClassName="system-node-critical"))
    made = ask.patch("pods", "p", lambda old: replace(old, spec=replace(old.spec, priority=None)))
    assert made.spec.priority == 2_000_001_000


def test_what_is_remembered_does_not_show_in_names(ask: Any) -> None:
    one = ask.create("pods", pod("a"))
    ask.server.admission._templates.forget("")
    other = ask.create("pods", pod("b"))
    assert other.spec is not one.spec
    assert other.spec == one.spec
    different = ask.create("pods", pod("c", terminationGracePeriodSeconds=7))
    assert different.spec.volumes != one.spec.volumes


def test_plugins_can_be_left_out(server: Server) -> None:
    server.extend(admission.standalone())
    pods = server.registry.find("", "v1", "pods")
    assert verbs.create(server, pods, "default", to_struct(Pod, pod())).spec.serviceAccountName == ""


def test_deciding_about_one_more_pod_of_a_template_is_cheap(ask: Any) -> None:
    """A bound so wide that only a lost memory breaks it: deciding anew takes longer by far."""
    pods, body = ask.resource("pods"), to_struct(Pod, {**pod(), "metadata": {"generateName": "p-"}})
    body = replace(body, spec=ask.create("pods", pod()).spec)
    chain = ask.server.admission
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(200):
            request = AdmissionAttributes("CREATE", pods, "", "default", "", body, None, APISERVER)
            ask.server.validate(replace(request, obj=ask.server.admit(request)))
        rounds.append((time.process_time() - start) / 200)
    assert len(chain._templates.mutated) <= 2
    assert min(rounds) < 60e-6
