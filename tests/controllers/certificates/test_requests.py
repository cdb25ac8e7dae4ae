"""The rules of the signers, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.controllers.certificates.authority import EXTENDED_USAGES, KEY_USAGES
from steersman.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY,
    RULES,
    RequestedCertificate,
)
from tests.harness.certificate_requests import KUBELET_USAGES, SERVING_USAGES

NODE_ASKED = RequestedCertificate("system:node:n1", ("system:nodes",))
SERVING = RequestedCertificate("system:node:n1", ("system:nodes",), dns=("n1",), ips=("10.0.0.1",))


@pytest.mark.parametrize(
    ("signer", "asked", "usages", "wrong"),
    [
        (KUBELET_CLIENT, NODE_ASKED, KUBELET_USAGES, ""),
        (KUBELET_CLIENT, NODE_ASKED, ("client auth", "digital signature"), ""),
        (KUBELET_CLIENT, NODE_ASKED, ("client auth",), "usages did not match"),
        (
            KUBELET_CLIENT,
            replace(NODE_ASKED, organizations=()),
            KUBELET_USAGES,
            "subject organization is not",
        ),
        (KUBELET_CLIENT, replace(NODE_ASKED, common_name="n1"), KUBELET_USAGES, "subject common name does"),
        (KUBELET_CLIENT, replace(NODE_ASKED, dns=("a",)), KUBELET_USAGES, "DNS subjectAltNames are not"),
        (KUBELET_CLIENT, replace(NODE_ASKED, ips=("::1",)), KUBELET_USAGES, "IP subjectAltNames are not"),
        (
            KUBELET_CLIENT,
            replace(NODE_ASKED, emails=("a@b",)),
            KUBELET_USAGES,
            "Email subjectAltNames are not",
        ),
        (KUBELET_CLIENT, replace(NODE_ASKED, uris=("a:b",)), KUBELET_USAGES, "URI subjectAltNames are not"),
        (KUBELET_SERVING, SERVING, SERVING_USAGES, ""),
        (KUBELET_SERVING, SERVING, ("server auth", "digital signature"), ""),
        (KUBELET_SERVING, replace(SERVING, dns=()), SERVING_USAGES, ""),
        (KUBELET_SERVING, NODE_ASKED, SERVING_USAGES, "DNS or IP subjectAltName is required"),
        (KUBELET_SERVING, replace(SERVING, emails=("a@b",)), SERVING_USAGES, "Email subjectAltNames are not"),
        (KUBELET_SERVING, replace(SERVING, uris=("a:b",)), SERVING_USAGES, "URI subjectAltNames are not"),
        (
            KUBELET_SERVING,
            SERVING,
            KUBELET_USAGES,
            "usages did not match [digital signature key encipherment s",
        ),
        (KUBELET_SERVING, replace(SERVING, common_name="n1"), SERVING_USAGES, "subject common name does"),
        (
            KUBELET_SERVING,
            replace(SERVING, organizations=("x",)),
            SERVING_USAGES,
            "subject organization is not",
        ),
        (CLIENT, RequestedCertificate("anybody", ("any",)), ("client auth",), ""),
        (
            CLIENT,
            RequestedCertificate("anybody", ()),
            ("digital signature",),
            "missing required usage for client certificate",
        ),
        (
            CLIENT,
            RequestedCertificate("anybody", ()),
            ("client auth", "cert sign"),
            "invalid usage for client certificate: c",
        ),
        (LEGACY, RequestedCertificate("", ()), (), ""),
    ],
)
def test_each_signer_has_its_rules(
    signer: str, asked: RequestedCertificate, usages: Sequence[str], wrong: str
) -> None:
    said = RULES[signer](asked, usages)
    assert said.startswith(wrong)
    assert bool(said) == bool(wrong)


USAGES = st.lists(st.sampled_from([*KEY_USAGES, *EXTENDED_USAGES]), max_size=4)
NAMES = st.sampled_from(["system:node:n1", "n1", "system:nodes", "system:masters", ""])


@given(
    name=NAMES,
    organizations=st.lists(NAMES, max_size=2).map(tuple),
    dns=st.booleans(),
    uri=st.booleans(),
    usages=USAGES,
)
def test_no_kubelet_signer_signs_for_anything_but_a_node(
    name: str, organizations: tuple[str, ...], dns: bool, uri: bool, usages: list[str]
) -> None:
    asked = RequestedCertificate(name, organizations, dns=("d",) if dns else (), uris=("u:v",) if uri else ())
    for name_of_signer, purpose in ((KUBELET_CLIENT, "client auth"), (KUBELET_SERVING, "server auth")):
        if not RULES[name_of_signer](asked, usages):
            assert asked.organizations == ("system:nodes",)
            assert asked.common_name.startswith("system:node:")
            assert not asked.uris
            assert set(usages) - {"key encipherment"} == {"digital signature", purpose}


@given(usages=USAGES)
def test_the_client_signer_never_signs_for_servers_or_authorities(usages: list[str]) -> None:
    if not RULES[CLIENT](RequestedCertificate("x", ()), usages):
        assert "client auth" in usages
        assert not {"server auth", "any", "cert sign", "code signing"} & set(usages)
