"""The explanation of an object: the tree of what it depends on, the findings about each, and the ranking of them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from msgspec.structs import replace

from steersman.explain.model import Case, Document, Explanation, Finding, Ref, Snapshot, State, Weight, ref_of
from steersman.explain.relations import dependants, names, owner, state
from steersman.explain.situations import findings

MAX_OBJECTS = 1000
"""Objects of one tree that are looked at."""


def explain(snapshot: Snapshot, document: Document) -> Explanation:
    """Explain an object from a snapshot."""
    steps = explain_in_steps(snapshot, document)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            explanation: Explanation = done.value
            return explanation


def explain_in_steps(snapshot: Snapshot, document: Document) -> Generator[None, None, Explanation]:
    """Explain an object, and pause after each object that is looked at: a tree may have hundreds of pods."""
    tree: list[State] = []
    found: list[Finding] = []
    for case, depth, relation in _walk(snapshot, document):
        told = state(case, depth, relation)
        tree.append(told)
        found += [replace(each, depth=depth) for each in findings(case)]
        yield
    above = list(_owners(snapshot, document))
    for depth, each in enumerate(above, 1):
        case = Case(snapshot, each)
        tree.append(state(case, -depth, "owned by"))
        # What is wrong with an owner only matters where nothing deeper is.
        found += [replace(one, depth=-depth) for one in findings(case)]
    target = tree[0]
    if target.well:
        # What is wrong with the owner of a healthy object is worth knowing, and no more.
        found = [replace(each, weight=Weight.NOTE) if each.depth < 0 else each for each in found]
    ranked = rank(found)
    blocked = any(each.weight > Weight.NOTE for each in ranked)
    return Explanation(
        subject=target.subject,
        at=snapshot.now,
        summary=summary(document, target),
        well=target.well and not blocked,
        findings=ranked,
        tree=tuple(sorted(tree, key=lambda one: one.depth < 0)),
        unread=tuple(f"{kind}: {why}" for kind, why in sorted(snapshot.unread.items())),
    )


def summary(document: Document, target: State) -> str:
    """The wanted and the actual state of an object, in one sentence."""
    wants = f" wants {target.wants}" if target.wants else ""
    return f"{names(document)}{wants}: {target.has}."


def _walk(snapshot: Snapshot, document: Document) -> Iterator[tuple[Case, int, str]]:
    """The object and all that its state follows from, depth first, each once."""
    seen: dict[Ref, None] = {}
    stack: list[tuple[Document, int, str]] = [(document, 0, "")]
    while stack and len(seen) < MAX_OBJECTS:
        each, depth, relation = stack.pop()
        if ref_of(each) in seen:
            continue
        seen[ref_of(each)] = None
        case = Case(snapshot, each)
        yield case, depth, relation
        edges = [(below, depth + 1, how) for how, below in dependants(case)]
        stack.extend(reversed(edges))


def _owners(snapshot: Snapshot, document: Document) -> Iterator[Document]:
    seen = {ref_of(document)}
    above = owner(snapshot, document)
    while above is not None and ref_of(above) not in seen:
        seen.add(ref_of(above))
        yield above
        above = owner(snapshot, above)


def rank(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Merge findings with equal causes, and sort them by weight, the deepest first among equals."""
    groups: dict[tuple[str, str, str, int], list[Finding]] = {}
    for each in found:
        groups.setdefault((each.code, each.cause, each.subject.kind, each.depth), []).append(each)
    merged = [
        replace(group[0], others=tuple(each.subject for each in group[1:])) for group in groups.values()
    ]
    # A consequence explains nothing where its cause is known.
    causes = any(each.weight >= Weight.WAITS for each in merged)

    def order(each: Finding) -> tuple[int, int, int]:
        weight = each.weight
        if weight is Weight.CONSEQUENCE and not causes:
            weight = Weight.BLOCKED
        return (-weight, -each.depth, -len(each.others))

    return tuple(sorted(merged, key=order))
