"""Objects of kinds that are not known here, such as custom resources: their own conditions say what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.explain.model import Case, Finding, Weight
from steersman.explain.situations.registry import ANY, knows, situation
from steersman.explain.words import brief, duration

POSITIVE = ("Ready", "Available", "Synced", "Healthy", "Accepted", "Programmed", "Established")
"""Conditions that are True where all is well, in the order in which they are looked at."""


@situation(ANY)
def own_condition(case: Case) -> Iterator[Finding]:
    """The controller of an unknown kind reports that the object is not well."""
    if knows(case.ref.kind):
        return
    for type_ in POSITIVE:
        condition = case.condition(type_)
        if condition and condition.get("status") != "True":
            reason, message = condition.get("reason"), brief(str(condition.get("message") or ""))
            since = case.time(condition.get("lastTransitionTime"))
            length = f" for {duration(case.now - since)}" if since is not None else ""
            said = f": {message}" if message else ""
            yield Finding(
                code="condition",
                subject=case.ref,
                cause=f"its condition {type_} is {condition.get('status')}{length}{f' ({reason})' if reason else ''}{said}",
                controller=f"the controller of {case.ref.kind}",
                remedy="see what its own controller says: its log, and the events of the object",
                # Whatever is found besides says more.
                weight=Weight.CONSEQUENCE,
            )
            return
