"""Chapters of the scenario about the validation rules of custom resources: definitions, objects, transitions, ratcheting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.real.scenario import APPLY, CRDS, JSONPATCH, Ask, delete, doc, get, here, patch, post, put

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"rule": text, **more}


def obj(properties: Any, *rules: Any, **more: Any) -> dict[str, Any]:
    """The schema of an object with rules."""
    made = {"type": "object", "properties": properties, **more}
    return {**made, "x-kubernetes-validations": list(rules)} if rules else made


def array(items: Any, *rules: Any, **more: Any) -> dict[str, Any]:
    made = {"type": "array", "items": items, **more}
    return {**made, "x-kubernetes-validations": list(rules)} if rules else made


def definition(plural: str, schema: Any, **version: Any) -> dict[str, Any]:
    kind = plural.capitalize()
    spec = {
        "group": "rules.test",
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": schema},
                **version,
            }
        ],
    }
    return doc("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.rules.test", spec=spec)


def bad(title: str, spec: Any, **more: Any) -> Ask:
    """A definition that is refused, for the schema of its spec."""
    return post(title, CRDS, definition("bads", obj({"spec": spec})), **more)


BOUNDED = {"type": "string", "maxLength": 10}
# fmt: off
REFUSED = (
    bad("a rule that does not parse", obj({"a": INTEGER}, rule("self.a >"))),
    bad("a rule that is no bool", obj({"a": INTEGER}, rule("self.a + 1"))),
    bad("a rule on a field that is not there", obj({"a": INTEGER}, rule("self.b > 1"))),
    bad("a rule on an unknown variable", obj({"a": INTEGER}, rule("other.a > 1"))),
    bad("a rule that compares a number with a text", obj({"a": INTEGER}, rule("self.a == 'x'"))),
    bad("a rule with an unknown function", obj({"a": STRING}, rule("self.a.shout() == 'X'"))),
    bad("a rule with a bad pattern", obj({"a": BOUNDED}, rule("self.a.matches('(')"))),
    bad("a rule with a bad duration", obj({"a": BOUNDED}, rule("duration('x') > duration('1s')"))),
    bad("a rule with a mixed list", obj({"a": BOUNDED}, rule("self.a in ['x', 1]"))),
    bad("a rule that is empty", obj({"a": INTEGER}, rule(""))),
    bad("a message of blanks", obj({"a": INTEGER}, rule("self.a > 1", message="  "))),
    bad("a message of two lines", obj({"a": INTEGER}, rule("self.a > 1", message="a\nb"))),
    bad("a rule of two lines without a message", obj({"a": INTEGER}, rule("self.a > 1 &&\nself.a < 5"))),
    bad("a message expression that is no text", obj({"a": INTEGER}, rule("self.a > 1", messageExpression="self.a"))),
    bad("a message expression that does not parse", obj({"a": INTEGER}, rule("self.a > 1", messageExpression="'a' +"))),
    bad("an empty message expression", obj({"a": INTEGER}, rule("self.a > 1", messageExpression=" "))),
    bad("an unknown reason", obj({"a": INTEGER}, rule("self.a > 1", reason="Nope"))),
    bad("a field path that leads nowhere", obj({"a": INTEGER}, rule("self.a > 1", fieldPath=".b"))),
    bad("a field path without a dot", obj({"a": INTEGER}, rule("self.a > 1", fieldPath="a"))),
    bad("oldSelf on an item of a list", obj({"a": array({**INTEGER, "x-kubernetes-validations": [rule("self > oldSelf")]}, maxItems=5)})),
    bad("optionalOldSelf without oldSelf", obj({"a": {**INTEGER, "x-kubernetes-validations": [rule("self > 1", optionalOldSelf=True)]}})),
    bad("optionalOldSelf used as if it were not", obj({"a": {**INTEGER, "x-kubernetes-validations": [rule("self > oldSelf", optionalOldSelf=True)]}})),
    bad("a rule that costs too much", obj({"a": array({"type": "string"}, rule("self.all(x, self.all(y, x == y || true))"))})),
    bad("a rule that costs a little too much", obj({"a": array(BOUNDED, rule("self.all(x, self.all(y, x == y || true))"), maxItems=2000)})),
    bad("a pattern on a text without a limit", obj({"a": array({**STRING, "x-kubernetes-validations": [rule("self.matches('^[a-z]+$')")]})})),
    bad("a message that costs too much", obj({"a": array(STRING, rule("self.size() < 5", messageExpression="self.map(x, self.map(y, x + y).join('')).join('')"))})),
    bad("rules that cost too much together", obj({f"a{i}": array(BOUNDED, rule("self.all(x, self.exists(y, x == y))"), maxItems=600 + i) for i in range(60)}), unordered=True),
    bad("a rule inside of a map without a limit", obj({"a": {"type": "object", "additionalProperties": {**STRING, "x-kubernetes-validations": [rule("self.contains('a')")]}}})),
    bad("a rule on a field that is not typed", obj({"a": {"x-kubernetes-preserve-unknown-fields": True}}, rule("self.a.b > 1"))),
    bad("a default that breaks its rule", obj({"a": {**INTEGER, "default": 1, "x-kubernetes-validations": [rule("self > 1")]}})),
    bad("a rule in a combinator", obj({"a": {**INTEGER, "anyOf": [{"x-kubernetes-validations": [rule("self > 1")]}]}})),
    bad("many errors at once", obj({"a": INTEGER, "b": STRING}, rule("self.a == 'x'"), rule("self.c"), rule("self.b + 1 > 2"))),
)

SPEC = obj(
    {
        "replicas": INTEGER, "min": INTEGER, "max": INTEGER,
        "name": {**BOUNDED, "x-kubernetes-validations": [rule("self.startsWith('x')", message="must start with x")]},
        "ratio": {"type": "number"},
        "when": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte", "maxLength": 20},
        "port": {"x-kubernetes-int-or-string": True, "maxLength": 10},
        "labels": {"type": "object", "maxProperties": 5, "additionalProperties": {**BOUNDED, "x-kubernetes-validations": [rule("self != 'forbidden'")]}},
        "items": array(obj({"name": BOUNDED, "n": INTEGER}, rule("self.n >= 0"), rule("self.n >= oldSelf.n", message="n may not shrink"), required=["name", "n"]), maxItems=5, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        "set": array(BOUNDED, rule("self == oldSelf", message="the set is immutable"), maxItems=5, **{"x-kubernetes-list-type": "set"}),
        "list": array(INTEGER, rule("self.isSorted()"), rule("self.all(x, 10 / x > 0)"), maxItems=5),
        "kept": {**INTEGER, "x-kubernetes-validations": [rule("self == oldSelf", message="is immutable")]},
        "once": {**INTEGER, "x-kubernetes-validations": [rule("oldSelf.hasValue() || self == 1", optionalOldSelf=True, message="must be 1 at first")]},
        "class-name": BOUNDED, "namespace": BOUNDED,
        "host": {**BOUNDED, "maxLength": 30},
        "address": {**BOUNDED, "maxLength": 40},
        "size": {**BOUNDED},
        "nested": obj({"a": INTEGER, "b": INTEGER}, rule("self.a < self.b", fieldPath=".b", reason="FieldValueForbidden", message="a before b"), rule("!has(self.a) || self.a != 7", reason="FieldValueRequired", message="no sevens"), rule("!has(self.a) || self.a != 8", reason="FieldValueDuplicate", message="no eights"), rule("!has(self.a) || self.a != 9", messageExpression="'a is %d'.format([self.a])"), rule("!has(self.a) || self.a != 10", message="no tens", messageExpression="string(1 / (self.a - 10))")),
    },
    rule("!has(self.replicas) || !has(self.min) || self.min <= self.replicas"),
    rule("!has(self.replicas) || !has(self.max) || self.replicas <= self.max", message="replicas may not exceed max"),
    rule("!has(self.ratio) || self.ratio >= 0.5"),
    rule("!has(self.when) || self.when.getFullYear() >= 2000"),
    rule("!has(self.wait) || self.wait <= duration('1h')"),
    rule("!has(self.data) || size(self.data) <= 4"),
    rule("!has(self.port) || (type(self.port) == int ? self.port < 100 : self.port.endsWith('%'))"),
    rule("!has(self.__namespace__) || self.__namespace__ != 'kube'"),
    rule("!has(self.class__dash__name) || self.class__dash__name != 'none'"),
    rule("!has(self.host) || isURL(self.host)"),
    rule("!has(self.address) || isIP(self.address) || isCIDR(self.address)"),
    rule("!has(self.size) || quantity(self.size).isLessThan(quantity('1Gi'))"),
    rule("!has(self.items) || self.items.exists_one(i, i.name == 'main')", messageExpression="'there are %d items, none or many of them main'.format([self.items.size()])"),
    rule("!has(self.replicas) || !has(oldSelf.replicas) || self.replicas >= oldSelf.replicas - 5", message="replicas may shrink by 5 only"),
)
GADGETS = here("gadgets", "rules.test")


def gadget(name: str, /, **spec: Any) -> dict[str, Any]:
    return doc("rules.test/v1", "Gadgets", name, spec=spec)


def created(title: str, /, **spec: Any) -> Ask:
    return post(title, GADGETS, gadget("x", **spec))


def changed(title: str, /, **spec: Any) -> Ask:
    return patch(title, f"{GADGETS}/g", {"spec": spec})


DEFINITION = definition(
    "gadgets",
    obj(
        {"spec": SPEC, "status": obj({"ready": INTEGER, "phase": STRING}, rule("self.ready >= 0"), rule("self.ready >= oldSelf.ready", message="ready may not shrink"))},
        rule("self.metadata.name.size() <= 12", message="names have 12 characters at most"),
        rule("!has(self.status) || !has(self.spec.replicas) || self.status.ready <= self.spec.replicas", message="no more ready than asked for"),
    ),
    subresources={"status": {}},
    selectableFields=[{"jsonPath": ".spec.name"}],
)
OBJECTS = (
    post("the definition", CRDS, DEFINITION, head=True),
    get("it is served", GADGETS, until=200, head=True),
    post("an object that breaks no rule", GADGETS, gadget("g", replicas=3, min=1, max=5, kept=1, once=1, items=[{"name": "main", "n": 1}], set=["a", "b"])),
    post("a name that is too long", GADGETS, gadget("a-name-of-more-than-twelve")),
    created("fewer than the minimum", replicas=1, min=2),
    created("more than the maximum", replicas=6, max=5),
    created("two rules at once", replicas=6, max=5, min=7),
    created("a name with another letter", name="y"),
    created("a ratio that is too small", ratio=0.25),
    created("a ratio that is a whole number", ratio=1),
    created("a time long ago", when="1999-01-01T00:00:00Z"),
    created("a time in a zone", when="2000-01-01T00:30:00+01:00"),
    created("a long wait", wait="2h"),
    created("much data", data="aGVsbG8="),
    created("a port that is too large", port=100),
    created("a port in percent", port="5%"),
    created("a port that is a text", port="http"),
    created("a label that is forbidden", labels={"a": "fine", "b": "forbidden"}),
    created("an item below zero", items=[{"name": "main", "n": -1}]),
    created("items without a main one", items=[{"name": "a", "n": 1}, {"name": "b", "n": 2}]),
    created("a list out of order", list=[2, 1]),
    created("a division by zero", list=[0, 1]),
    created("a reserved word", namespace="kube"),
    created("a name with a dash", **{"class-name": "none"}),
    created("a host that is no URL", host="example.com"),
    created("an address", address="10.0.0.0/8"),
    created("an address of no family", address="10.0.0"),
    created("a size that is too large", size="2Gi"),
    created("a size that is no quantity", size="big"),
    created("once another number", once=2),
    created("a before b", nested={"a": 2, "b": 1}),
    created("without a field that a rule reads", nested={"a": 2}),
    created("seven is required", nested={"a": 7, "b": 9}),
    created("eight is a duplicate", nested={"a": 8, "b": 9}),
    created("nine says so", nested={"a": 9, "b": 10}),
    created("ten's message fails", nested={"a": 10, "b": 11}),
    created("an invalid object is not asked by rules", replicas="x", min=2),
    created("an enum-less type error besides", replicas=1, min=2, name=5),
    changed("an immutable field", kept=2),
    changed("an immutable field set anew", kept=1),
    changed("once is no more once", once=5),
    changed("an item that shrinks", items=[{"name": "main", "n": 0}]),
    changed("an item that grows, and a new one", items=[{"name": "main", "n": 2}, {"name": "b", "n": 0}]),
    changed("a set in another order", set=["b", "a"]),
    changed("a set with another item", set=["a", "c"]),
    changed("too few replicas at once", replicas=None, min=None, max=None),
    changed("replicas again", replicas=20, max=30),
    changed("far fewer replicas", replicas=10),
    patch("a JSON patch that breaks a rule", f"{GADGETS}/g", [{"op": "replace", "path": "/spec/replicas", "value": 31}], JSONPATCH),
    patch("an apply that breaks a rule", f"{GADGETS}/g?fieldManager=m&force=true", {"apiVersion": "rules.test/v1", "kind": "Gadgets", "metadata": {"name": "g"}, "spec": {"replicas": 31}}, APPLY),
    patch("an apply that creates what breaks a rule", f"{GADGETS}/new?fieldManager=m", {"apiVersion": "rules.test/v1", "kind": "Gadgets", "metadata": {"name": "new"}, "spec": {"ratio": 0.1}}, APPLY),
    post("a dry run that breaks a rule", f"{GADGETS}?dryRun=All", gadget("dry", ratio=0.1)),
    patch("a status that breaks a rule", f"{GADGETS}/g/status", {"status": {"ready": -1}}),
    patch("a status", f"{GADGETS}/g/status", {"status": {"ready": 5}}),
    patch("a status that shrinks", f"{GADGETS}/g/status", {"status": {"ready": 4}}),
    patch("a status that exceeds the spec", f"{GADGETS}/g/status", {"status": {"ready": 50}}),
    get("by a selectable field", f"{GADGETS}?fieldSelector=spec.name%3Dx"),
    delete("the object", f"{GADGETS}/g", head=True),
)

LOOSE = definition("ratchets", obj({"spec": obj({"a": INTEGER, "b": INTEGER, "list": array(obj({"n": INTEGER})), "map": {"type": "object", "additionalProperties": INTEGER}})}))
TIGHT = definition(
    "ratchets",
    obj({
        "spec": obj(
            {
                "a": {**INTEGER, "x-kubernetes-validations": [rule("self < 5", message="a is too large")]},
                "b": INTEGER,
                "list": array(obj({"n": INTEGER}, rule("self.n < 5", message="n is too large")), maxItems=5),
                "map": {"type": "object", "maxProperties": 5, "additionalProperties": {**INTEGER, "x-kubernetes-validations": [rule("self < 5", message="a value is too large")]}},
            },
            rule("!has(self.b) || self.b < 5", message="b is too large"),
        )
    }),
)
RATCHETS = here("ratchets", "rules.test")


def ratchet(title: str, /, keep: Mapping[str, str] | None = None, **spec: Any) -> Ask:
    # A real server evaluates the rules of fields in no particular order.
    return patch(title, f"{RATCHETS}/r", {"spec": spec}, unordered=True, keep=keep or {})


RATCHETING = (
    post("the definition without rules", CRDS, LOOSE, head=True),
    get("it is served", RATCHETS, until=200, head=True),
    post("an object", RATCHETS, doc("rules.test/v1", "Ratchets", "r", spec={"a": 10, "b": 10, "list": [{"n": 10}], "map": {"x": 10}})),
    get("the definition's version", f"{CRDS}/ratchets.rules.test", keep={"crd": "metadata.resourceVersion"}, head=True),
    put("the definition with rules", f"{CRDS}/ratchets.rules.test", {**TIGHT, "metadata": {"name": "ratchets.rules.test", "resourceVersion": "<<crd>>"}}, head=True),
    post("a new object is checked", RATCHETS, doc("rules.test/v1", "Ratchets", "s", spec={"a": 10}), until=422),
    patch("a label, nothing else", f"{RATCHETS}/r", {"metadata": {"labels": {"x": "y"}}}, unordered=True),
    ratchet("another field of the same object", b=11),
    ratchet("the same value, which breaks its rule", a=10),
    ratchet("another value that breaks its rule", a=11),
    ratchet("a list that has changed", list=[{"n": 10}, {"n": 1}]),
    ratchet("a map that has grown", map={"y": 1}),
    ratchet("a map with another large value", map={"y": 6}),
    ratchet("values that break no rule", a=1, b=1, list=[], map=None, keep={"v": "metadata.resourceVersion"}),
    # A real server tries an update on its cache first, and tells the warnings of that attempt, too.
    get("the cache has caught up", f"{RATCHETS}/r?resourceVersion=<<v>>", head=True),
    ratchet("no way back", a=10),
)
# fmt: on

CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "rules-refused": REFUSED,
    "rules": OBJECTS,
    "rules-ratcheting": RATCHETING,
}
