"""Validation of Nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.label_syntax import key_errors, value_errors
from steersman.server.validation import addresses, names, resources
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, go_struct
from steersman.server.validation.pods.scheduling import EFFECTS
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

_is_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch


def validate_node(errors: FieldErrors, node: v1.Node) -> None:
    meta.validate_object_meta(errors, node.metadata, namespaced=False)
    _validate_node_fields(errors, node)


def _validate_node_fields(errors: FieldErrors, node: v1.Node) -> None:
    # Upstream reports taints under the metadata, where they were before spec.taints.
    _validate_taints(errors, "metadata.taints", node.spec.taints)
    _validate_node_resources(errors, node.status)
    swap = node.status.nodeInfo.swap
    if swap is not None and swap.capacity is not None:
        errors.positive("metadata.nodeSwapStatus.capacity", swap.capacity)
    _validate_declared_features(errors, "status.declaredFeatures", node.status.declaredFeatures)
    cidrs = node.spec.podCIDRs
    for i, cidr in enumerate(cidrs):
        addresses.validate_cidr(errors, f"spec.podCIDRs[{i}]", cidr)
    if len(cidrs) > 1 and not addresses.one_per_family(cidrs):
        errors.invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family")


def validate_node_update(errors: FieldErrors, new: v1.Node, old: v1.Node) -> None:
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    if new.spec is not old.spec:
        _validate_node_fields(errors, new)
    validate_node_status(errors, new, old)


def validate_node_status(errors: FieldErrors, new: v1.Node, old: v1.Node) -> None:
    """The podCIDRs and the providerID of a node are immutable once set."""
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_node_resources(errors, new.status)
    _validate_declared_features(errors, "status.declaredFeatures", new.status.declaredFeatures)
    seen: list[v1.NodeAddress] = []
    for i, address in enumerate(new.status.addresses):
        if address in seen:
            shown = go_struct(Type=address.type, Address=address.address)
            errors.duplicate(f"status.addresses[{i}]", shown)
        seen.append(address)
    now, was = new.spec, old.spec
    if was.podCIDRs and now.podCIDRs != was.podCIDRs:
        keeps = 'node updates may not change podCIDR except from "" to valid'
        different = sum(a != b for a, b in zip(now.podCIDRs, was.podCIDRs, strict=False))
        for _ in range(1 if len(now.podCIDRs) != len(was.podCIDRs) else different):
            errors.forbidden("spec.podCIDRs", keeps)
    if was.providerID and now.providerID != was.providerID:
        keeps = 'node updates may not change providerID except from "" to valid'
        errors.forbidden("spec.providerID", keeps)
    _validate_taints(errors, "metadata.taints", now.taints)
    if now.externalID != was.externalID:
        errors.forbidden("spec.externalID", "may not be updated")


def _validate_taints(errors: FieldErrors, path: str, taints: tuple[v1.Taint, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        at = f"{path}[{i}]"
        errors.invalid_each(f"{at}.key", taint.key, key_errors(taint.key))
        if messages := value_errors(taint.value):
            errors.invalid(f"{at}.value", taint.value, ";".join(messages))
        errors.enum(f"{at}.effect", taint.effect, EFFECTS)
        if (taint.key, taint.effect) in seen:
            shown = go_struct(
                Key=taint.key, Value=taint.value, Effect=taint.effect, TimeAdded=taint.timeAdded
            )
            errors.duplicate(at, shown, "taints must be unique by key and effect pair")
        seen.add((taint.key, taint.effect))


def _validate_node_resources(errors: FieldErrors, status: v1.NodeStatus) -> None:
    for name, value in (("capacity", status.capacity), ("allocatable", status.allocatable)):
        for resource, amount in value.items():
            resources.validate_resource_quantity(errors, f"status.{name}.{resource}", resource, amount)


def _validate_declared_features(errors: FieldErrors, path: str, features: tuple[str, ...]) -> None:
    for i, name in enumerate(features):
        if len(name) > 253:
            long = f'invalid feature name "{name}": must be no more than 253 characters'
            errors.invalid(f"{path}[{i}]", name, long)
        elif not _is_feature(name):
            errors.invalid(
                f"{path}[{i}]",
                name,
                f'invalid feature name "{name}": must start with an UpperCamelCase segment, with subsequent '
                "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only "
                "alphanumeric characters and slashes",
            )
        if i + 1 < len(features):
            after = features[i + 1]
            if name == after:
                errors.duplicate(f"{path}[{i + 1}]", after)
            elif name > after:
                errors.invalid(f"{path}[{i + 1}]", after, "list must be sorted alphabetically")


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "Node"): Rules[v1.Node](validate_node, validate_node_update, status=validate_node_status),
}
