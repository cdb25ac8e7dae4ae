"""CIDR flags: the ranges of pods, Services and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steersman.api.go_quote import quote
from steersman.api.ip_addresses import Network
from steersman.controllers.nodeipam import DEFAULT_SIZES, networks


def problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Errors in the CIDR flags."""
    services = values["service-cluster-ip-range"]
    if services.count(",") > 1:
        yield "--service-cluster-ip-range can not contain more than two entries"
    if not values["allocate-node-cidrs"]:
        return
    # differs: upstream detects the rest when node-ipam-controller starts, and exits then.
    if not values["cidr-allocator-type"]:
        yield "invalid CIDR allocator type:  (--cidr-allocator-type)"
    if not values["cluster-cidr"].strip():
        yield "Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set"
        return
    try:
        pods = networks(values["cluster-cidr"])
    except ValueError as error:
        yield f"{error} (--cluster-cidr)"
        return
    families = [network.version for network in pods]
    if len(pods) > 1 and families not in ([4, 6], [6, 4]):
        yield (
            f"len of ClusterCIDRs=={len(pods)} and they are not configured as dual stack "
            "(at least one from each IPFamily) (--cluster-cidr)"
        )
        return
    yield from _services(services)
    yield from _parts(values, pods)


def _services(text: str) -> Iterator[str]:
    if not text.strip():
        return
    try:
        families = [network.version for network in networks(text)]
    except ValueError as error:
        # differs: upstream logs a warning and continues without it, and may assign Service IPs to pods.
        yield f"{error} (--service-cluster-ip-range)"
        return
    if len(families) == 2 and families[0] == families[1]:
        yield (
            "serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles) "
            "(--service-cluster-ip-range)"
        )


def _parts(values: Mapping[str, Any], pods: tuple[Network, ...]) -> Iterator[str]:
    """Errors in the mask sizes of node CIDRs."""
    size = values["node-cidr-mask-size"]
    of_family = {4: values["node-cidr-mask-size-ipv4"], 6: values["node-cidr-mask-size-ipv6"]}
    if len(pods) > 1 and size:
        yield "usage of --node-cidr-mask-size is not allowed with dual-stack clusters"
    if len(pods) == 1:
        if size and any(of_family.values()):
            yield (
                "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
                "--node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags"
            )
        here = pods[0].version
        other = 10 - here
        if not size and of_family[other]:
            yield (
                f"usage of --node-cidr-mask-size-ipv{other} is not allowed for a single-stack IPv{here} cluster"
            )
    for network in pods:
        part = size or of_family[network.version] or DEFAULT_SIZES[network.version]
        if not network.prefixlen <= part <= network.max_prefixlen:
            yield (
                "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to "
                f"--node-cidr-mask-size configured for CIDR family ({network}, {part})"
            )
        elif network.version == 6 and part - network.prefixlen > 16:
            yield (
                "New CIDR set failed; the node CIDR size is too big "
                f"({quote(str(network))} in parts of /{part}: --node-cidr-mask-size)"
            )
