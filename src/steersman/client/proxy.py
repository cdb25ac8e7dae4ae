"""Chooses the HTTP proxy from the environment, as Go's ProxyFromEnvironment does."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit


def proxy_for(url: str, environ: Mapping[str, str]) -> str:
    """Return the URL of the proxy for a URL, or "" for a direct connection. Loopback is never proxied."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    variable = f"{parts.scheme}_proxy"
    proxy = environ.get(variable.upper()) or environ.get(variable) or ""
    if not proxy or _is_loopback(host):
        return ""
    excluded = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_matches(rule.strip().lower(), host.lower(), port) for rule in excluded.split(",")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _matches(rule: str, host: str, port: int) -> bool:
    if not rule:
        return False
    if rule == "*":
        return True
    try:
        network = ip_network(rule, strict=False)
    except ValueError:
        pass
    else:
        try:
            return ip_address(host) in network
        except ValueError:
            return False
    name, colon, rest = rule.partition(":")
    if colon and rest != str(port):
        return False
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")
