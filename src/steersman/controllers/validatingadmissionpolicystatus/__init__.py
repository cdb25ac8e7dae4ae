"""validatingadmissionpolicy-status-controller (a dialogue): type-checks the CEL expressions of policies.

The expressions are checked against the OpenAPI schemas of the kinds that the policy matches. The warnings go into
``status.typeChecking``; they do not keep a policy from being used.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import NotFound
from steersman.api.kinds.admission import VALIDATINGADMISSIONPOLICIES, Rule, ValidatingAdmissionPolicy
from steersman.intent.actions import Discover, Patch, PatchType
from steersman.intent.controller import Controller, Flag, Watch
from steersman.intent.verdict import Rest, Verdict

FIELD_MANAGER = "validatingadmissionpolicy-status"
MAX_KINDS = 10
"""The most kinds that one rule is checked against."""
WORKERS = Flag("concurrent-validating-admission-policy-status-syncs", 5)


def is_unchecked(policy: ValidatingAdmissionPolicy) -> bool:
    """Whether the status is of an earlier generation."""
    return policy.metadata.generation > policy.status.observedGeneration


def matched_kinds(policy: ValidatingAdmissionPolicy, discovered: DiscoveryResult) -> tuple[ApiResource, ...]:
    """The kinds that a policy matches by name, sorted by group, version and kind.

    A rule that matches `MAX_KINDS` ends the search, as upstream.
    """
    constraints = policy.spec.matchConstraints
    kinds: dict[tuple[str, str, str], ApiResource] = {}
    for rule in constraints.resourceRules if constraints is not None else ():
        named = tuple(islice(_resources_of(rule, discovered), MAX_KINDS))
        kinds.update(((one.group, one.version, one.kind), one) for one in named)
        if len(named) == MAX_KINDS:
            break
    return tuple(kinds[key] for key in sorted(kinds))


def _resources_of(rule: Rule, discovered: DiscoveryResult) -> Iterator[ApiResource]:
    """The resources that a rule names. A rule with a wildcard group or version names none."""
    if any("*" in each for each in (*rule.apiGroups, *rule.apiVersions)):
        return
    names = sorted(name for name in rule.resources if "*" not in name and "/" not in name)
    for group in sorted(rule.apiGroups):
        for version in sorted(rule.apiVersions):
            for name in names:
                yield from _find_resources(discovered, group, version, name.lower())


def _find_resources(
    discovered: DiscoveryResult, group: str, version: str, name: str
) -> Iterator[ApiResource]:
    for resource in discovered.resources:
        # As upstream: the empty group, which should be the core group, matches any group.
        matches = resource.version == version and (not group or resource.group == group)
        if matches and name in (resource.name, resource.kind.lower()):
            yield resource


async def decide(policy: ValidatingAdmissionPolicy, now: datetime) -> Verdict:
    # Imported for the first policy: CEL is slow to load, and most clusters have no policies.
    from steersman.controllers.validatingadmissionpolicystatus.type_checker import check_types

    if not is_unchecked(policy):
        return Rest("expressions already checked")
    kinds = matched_kinds(policy, await Discover())
    found = await check_types(policy.spec, kinds)
    warnings = [{"fieldRef": field, "warning": warning} for field, warning in found]
    body = {
        "apiVersion": VALIDATINGADMISSIONPOLICIES.api_version,
        "kind": VALIDATINGADMISSIONPOLICIES.name,
        "metadata": {"name": policy.metadata.name},
        "status": {
            "observedGeneration": policy.metadata.generation,
            "typeChecking": {"expressionWarnings": warnings} if warnings else {},
        },
    }
    try:
        await Patch(
            policy, body, PatchType.APPLY, subresource="status", field_manager=FIELD_MANAGER, force=True
        )
    except NotFound:
        return Rest("policy already gone")
    return Rest(f"expressions checked against {len(kinds)} kinds: {len(found)} warnings")


controller = Controller(
    name="validatingadmissionpolicy-status-controller",
    watches=(Watch(VALIDATINGADMISSIONPOLICIES, when=is_unchecked),),
    workers=WORKERS,
    decide=decide,
)
