"""validatingadmissionpolicy-status (a dialogue): a policy's status says what is wrong with its expressions.

The expressions are checked against the types of what the policy matches, by the server's own schemas. They are
used all the same, whatever is wrong with them: this only warns.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from steersman.api.discovery import Discovered, Resource
from steersman.api.errors import NotFound
from steersman.api.kinds.admission import VALIDATINGADMISSIONPOLICIES, Rule, ValidatingAdmissionPolicy
from steersman.intent.actions import Discover, Patch, PatchType
from steersman.intent.controller import Controller, Flag, Watch
from steersman.intent.verdict import Rest, Verdict

MANAGER = "validatingadmissionpolicy-status"
MOST = 10
"""How many kinds one rule is checked with."""
WORKERS = Flag("concurrent-validating-admission-policy-status-syncs", 5)


def behind(policy: ValidatingAdmissionPolicy) -> bool:
    """Whether the status is of an earlier policy."""
    return policy.metadata.generation > policy.status.observedGeneration


def matched(policy: ValidatingAdmissionPolicy, served: Discovered) -> tuple[Resource, ...]:
    """What a policy matches by name, each kind once, by group, version and kind.

    Where a rule names more than is checked, the rules after it are left out as well.
    """
    constraints = policy.spec.matchConstraints
    kinds: dict[tuple[str, str, str], Resource] = {}
    for rule in constraints.resourceRules if constraints is not None else ():
        named = tuple(islice(_named(rule, served), MOST))
        kinds.update(((one.group, one.version, one.kind), one) for one in named)
        if len(named) == MOST:
            break
    return tuple(kinds[key] for key in sorted(kinds))


def _named(rule: Rule, served: Discovered) -> Iterator[Resource]:
    """The resources a rule names. One that says "all" of groups or versions names none."""
    if any("*" in each for each in (*rule.apiGroups, *rule.apiVersions)):
        return
    names = sorted(name for name in rule.resources if "*" not in name and "/" not in name)
    for group in sorted(rule.apiGroups):
        for version in sorted(rule.apiVersions):
            for name in names:
                yield from _served(served, group, version, name.lower())


def _served(served: Discovered, group: str, version: str, name: str) -> Iterator[Resource]:
    for resource in served.resources:
        # Who leaves the group out means the core group, but is given what any group has of that name.
        meant = resource.version == version and (not group or resource.group == group)
        if meant and name in (resource.name, resource.kind.lower()):
            yield resource


async def decide(policy: ValidatingAdmissionPolicy, now: datetime) -> Verdict:
    # Most clusters have no policies: what reads expressions is loaded for the first of them.
    from steersman.controllers.validatingadmissionpolicystatus.checking import checked

    if not behind(policy):
        return Rest("checked already")
    kinds = matched(policy, await Discover())
    wrong = await checked(policy.spec, kinds)
    warnings = [{"fieldRef": field, "warning": warning} for field, warning in wrong]
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
        await Patch(policy, body, PatchType.APPLY, subresource="status", field_manager=MANAGER, force=True)
    except NotFound:
        return Rest("already gone")
    return Rest(f"checked with {len(kinds)} kinds: {len(wrong)} warnings")


controller = Controller(
    name="validatingadmissionpolicy-status-controller",
    watches=(Watch(VALIDATINGADMISSIONPOLICIES, when=behind),),
    workers=WORKERS,
    decide=decide,
)
