"""The types of discovery/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import Atomic, none
from steersman.api.generated.merge import ATOMIC, SET
from steersman.api.kinds import EMPTY, Struct


class EndpointConditions(Struct, frozen=True):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(Struct, frozen=True):
    addresses: Annotated[tuple[str, ...], SET] = msgspec.field(default_factory=none)
    conditions: EndpointConditions = msgspec.field(default_factory=EndpointConditions)
    deprecatedTopology: Mapping[str, str] = EMPTY
    hints: EndpointHints | None = None
    hostname: str | None = None
    nodeName: str | None = None
    targetRef: core_v1.ObjectReference | None = None
    zone: str | None = None


class EndpointHints(Struct, frozen=True):
    forNodes: Annotated[tuple[ForNode, ...], ATOMIC] = ()
    forZones: Annotated[tuple[ForZone, ...], ATOMIC] = ()


class EndpointPort(Atomic, frozen=True):
    appProtocol: str | None = None
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(meta_v1.Object, frozen=True):
    addressType: str = msgspec.field(default_factory=str)
    endpoints: Annotated[tuple[Endpoint, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)
    ports: Annotated[tuple[EndpointPort, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class ForNode(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)


class ForZone(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
