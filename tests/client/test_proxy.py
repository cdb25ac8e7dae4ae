from __future__ import annotations

import pytest

from steersman.client.proxy import proxy_for

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api.example:6443", {}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example:6443", {"https_proxy": PROXY}, PROXY),
        ("https://api.example:6443", {"https_proxy": "proxy:3128"}, PROXY),
        ("https://api.example:6443", {"HTTP_PROXY": PROXY}, ""),
        ("http://api.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "other, api.example"}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "example"}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example"}, ""),
        ("https://example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example"}, PROXY),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*.example"}, ""),
        ("https://notexample:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, PROXY),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:6443"}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:443"}, PROXY),
        ("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.1.2.3"}, ""),
        ("https://11.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, PROXY),
    ],
)
def test_the_environment_decides_as_it_does_for_go_programs(
    url: str, environ: dict[str, str], proxy: str
) -> None:
    assert proxy_for(url, environ) == proxy
