"""Definitions and objects, good and bad, of every sort there is a rule for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

GROUP = "crd.test"

Document = dict[str, Any]

S: Document = {"type": "string"}
I: Document = {"type": "integer"}
B: Document = {"type": "boolean"}
N: Document = {"type": "number"}
OPEN: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ANY: Document = {"x-kubernetes-preserve-unknown-fields": True}
EITHER: Document = {"x-kubernetes-int-or-string": True}


def fields(**properties: Any) -> Document:
    return {"type": "object", "properties": properties}


def spec(**properties: Any) -> Document:
    return fields(spec=fields(**properties))


def items(schema: Any, **more: Any) -> Document:
    return {"type": "array", "items": schema, **more}


def values(schema: Any) -> Document:
    return {"type": "object", "additionalProperties": schema}


def set_of(schema: Document) -> Document:
    return items(schema, **{"x-kubernetes-list-type": "set"})


def map_of(schema: Document, *keys: str) -> Document:
    return items(schema, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def version(name: str, schema: Document | None = None, *, storage: bool = False, **more: Any) -> Document:
    made = {"name": name, "served": True, "storage": storage, **more}
    return made if schema is None else {**made, "schema": {"openAPIV3Schema": schema}}


def define(
    plural: str,
    schema: Document | None = None,
    *,
    group: str = GROUP,
    kind: str = "",
    names: Document | None = None,
    meta: Document | None = None,
    below: Document | None = None,
    **more: Any,
) -> Document:
    """A definition; ``below`` goes into its one version, what follows into its spec."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", **(meta or {})},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "kind": kind or plural.capitalize().removesuffix("s"),
                **(names or {}),
            },
            "versions": [version("v1", schema, storage=True, **(below or {}))],
            **more,
        },
    }


# -- good definitions -------------------------------------------------------------------------

FORMATS = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid4",
    "uri",
    "byte",
    "hexcolor",
    "rgbcolor",
    "isbn",
    "creditcard",
    "ssn",
    "bsonobjectid",
    "k8s-short-name",
    "k8s-long-name",
    "password",
    "nonsense",
]

GOOD: dict[str, Document] = {
    "types": define(
        "types",
        spec(
            s=S,
            i=I,
            b=B,
            n=N,
            o=fields(x=S),
            a=items(S),
            m=values(I),
            either=EITHER,
            i32={**I, "format": "int32"},
            i64={**I, "format": "int64"},
            f={**N, "format": "float"},
            null={**S, "nullable": True},
            any=ANY,
        ),
    ),
    "limits": define(
        "limits",
        spec(
            s={**S, "minLength": 2, "maxLength": 4},
            p={**S, "pattern": "^[a-z]+(-[0-9]+)?$"},
            i={**I, "minimum": 1, "maximum": 10},
            x={**I, "minimum": 1, "maximum": 10, "exclusiveMinimum": True, "exclusiveMaximum": True},
            n={**N, "minimum": 0.5, "maximum": 1.5},
            times={**I, "multipleOf": 3},
            tenths={**N, "multipleOf": 0.1},
            a=items(I, minItems=1, maxItems=2),
            m={**values(S), "minProperties": 1, "maxProperties": 2},
            one={**S, "maxLength": 1},
            e={**S, "enum": ["a", "b"]},
            ei={**I, "enum": [1, 2]},
            en={**S, "nullable": True, "enum": ["a"]},
            r={**fields(x=S, y=S), "required": ["x", "y"]},
            nonsense={**I, "minimum": 1.5},
        ),
    ),
    "junctions": define(
        "junctions",
        spec(
            one={**fields(x=S, y=S), "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
            any={
                **fields(x=S, y=I),
                "anyOf": [{"required": ["x"]}, {"properties": {"y": {"minimum": 3}}, "required": ["y"]}],
            },
            all={**I, "allOf": [{"minimum": 2}, {"maximum": 4}]},
            none={**S, "not": {"enum": ["no"]}},
            port={**EITHER, "anyOf": [I, S], "pattern": "^[0-9]+%?$"},
            ip={**S, "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
        ),
    ),
    "defaults": define(
        "defaults",
        spec(
            a={**S, "default": "x"},
            o={
                **fields(p={**I, "default": 80}, q={**fields(z={**B, "default": True}), "default": {}}),
                "default": {},
            },
            l=items(fields(n={**S, "default": "item"}, m=S)),
            m=values(fields(v={**I, "default": 7})),
            nullable={**S, "nullable": True, "default": "d"},
            default={**S, "default": "d"},
            neither=S,
            li=items({**S, "default": "x"}),
            falsy={**I, "default": 0},
            half={**fields(a=S, b={**S, "default": "B"}), "default": {"a": "A"}},
        ),
    ),
    "pruned": define(
        "pruned",
        spec(
            a=S,
            o={**OPEN, "properties": {"known": fields(x=S)}},
            t=values(True),
            m=values(fields(x=S)),
            l=items(fields(x=S)),
            any=ANY,
            ol=items(fields(x=S), **ANY),
            raw={**OPEN, "x-kubernetes-embedded-resource": True},
            whole={**fields(spec=fields(x=S)), "x-kubernetes-embedded-resource": True},
        ),
        kind="Pruned",
    ),
    "opens": define("opens", OPEN),
    "sets": define(
        "sets",
        spec(
            s=set_of(S),
            m=map_of({**fields(k=S, v=I), "required": ["k"]}, "k"),
            mm=map_of({**fields(k=S, p={**S, "default": "TCP"}), "required": ["k"]}, "k", "p"),
            am=values(set_of(I)),
        ),
    ),
    "formats": define("formats", spec(**{name.replace("-", "_"): {**S, "format": name} for name in FORMATS})),
    "statuses": define(
        "statuses",
        fields(
            spec=fields(replicas=I, x=S),
            status=fields(replicas=I, selector=S, phase={**S, "enum": ["Up", "Down"]}),
        ),
        kind="Stat",
        below={
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                },
            }
        },
    ),
    "plain": define("plain", fields(spec=fields(x=S), status=fields(y=S)), kind="Plain"),
    "named": define(
        "named",
        fields(metadata=fields(name={**S, "maxLength": 5, "pattern": "^n"}), spec=fields(x=S)),
        kind="Named",
    ),
    "clusters": define("clusters", spec(x=S), scope="Cluster"),
    "selected": define(
        "selected",
        spec(color=S, size=I, on=B),
        kind="Selected",
        below={"selectableFields": [{"jsonPath": f".spec.{name}"} for name in ("color", "size", "on")]},
    ),
    "ruled": define(
        "ruled",
        fields(
            spec={
                **fields(x=I, y=S),
                "x-kubernetes-validations": [{"rule": "self.x > 0", "message": "positive"}],
            }
        ),
        kind="Ruled",
    ),
    "multi": define(
        "multi",
        kind="Multi",
        versions=[
            version("v1", spec(a=S, b={**S, "default": "one"}), storage=True),
            version("v2", spec(a=S, c={**S, "default": "two"})),
            {**version("v3", spec(a=S)), "served": False},
        ],
    ),
    "shown": define(
        "shown",
        spec(x=S),
        kind="Shown",
        names={"singular": "show", "listKind": "Showing", "shortNames": ["sh"], "categories": ["all"]},
        below={"additionalPrinterColumns": [{"name": "X", "type": "string", "jsonPath": ".spec.x"}]},
    ),
    "webhooks": define(
        "webhooks",
        spec(x=S),
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {"name": "a", "namespace": "b"}},
                "conversionReviewVersions": ["v1"],
            },
        },
    ),
    "approved": define(
        "approved",
        spec(x=S),
        kind="Approved",
        group="x.k8s.io",
        meta={"annotations": {"api-approved.kubernetes.io": "https://example.test/1"}},
    ),
    "unapproved": define(
        "unapproved",
        spec(x=S),
        kind="Unapproved",
        group="x.k8s.io",
        meta={"annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
    ),
    "patterns": define(
        "patterns",
        spec(
            posix={**S, "pattern": "^[[:alpha:]_]+$"},
            letters={**S, "pattern": r"^\pL+$"},
            flags={**S, "pattern": "^a(?i)b|c$"},
            literal={**S, "pattern": r"^\Qa.b\E$"},
            end={**S, "pattern": r"^x\z"},
            spaces={**S, "pattern": r"^\S+\s\d{2,}$"},
        ),
    ),
}

# -- objects: by definition and field, the values to try --------------------------------------

FIELDS: dict[str, dict[str, list[Any]]] = {
    "types": {
        "s": ["x", 1, True, None, 1.5, [], {}],
        "i": [1, 1.0, 1.5, "1", True, None, 2**40, [1]],
        "b": [True, "true", 1],
        "n": [1, 1.5, "x", True],
        "o": [{"x": "y"}, {"x": 1}, "s", [], None],
        "a": [["x"], ["x", 1], "x", [None], {}],
        "m": [{"a": 1}, {"a": "x"}, [1], {"a": None}],
        "either": [1, "x", 1.5, True, {}, None],
        "i32": [1, 2**31, 2**31 - 1, -(2**31) - 1, 1.5, "x", True, 1.0],
        "i64": [2**62, 1.5, "x", True],
        "f": [1.5, 1e39, "x", True],
        "null": [None, "x", 1],
        "any": [1, "x", None, {"a": {"b": None}}, [{"c": 1}]],
    },
    "limits": {
        "s": ["a", "ab", "abcde", "äö", "äöüßé"],
        "p": ["abc", "abc-1", "ABC", "abc\n", 'é<&>"\\'],
        "i": [0, 1, 10, 11],
        "x": [1, 2, 10],
        "n": [0.4, 0.5, 1.5, 1.6, 1, 2],
        "times": [3, 4, -3],
        "tenths": [0.3, 0.25, 1, 1.1, 1e22],
        "a": [[], [1], [1, 2, 3]],
        "m": [{}, {"a": "x"}, {"a": "x", "b": "x", "c": "x"}],
        "one": ["a", "ab"],
        "e": ["a", "c", 1, "A<b>"],
        "ei": [1, 3, 1.0, "1", 1.5],
        "en": [None, "a", "b"],
        "r": [{}, {"x": "1"}, {"x": "1", "y": "2"}],
        "nonsense": [1, 2],
    },
    "junctions": {
        "one": [{}, {"x": "1"}, {"x": "1", "y": "2"}],
        "any": [{}, {"x": "1"}, {"y": 1}, {"y": 3}, {"y": "z"}],
        "all": [1, 3, 5, "x"],
        "none": ["no", "yes"],
        "port": ["5%", 5, "x", True],
        "ip": ["1.2.3.4", "::1", "x"],
    },
    "defaults": {
        "o": [{}, {"p": 1, "q": {"z": False}}, None],
        "l": [[{}, {"n": "x"}, {"m": "y"}], [None]],
        "m": [{"a": {}, "b": {"v": 1}}, {"a": None}],
        "nullable": [None],
        "default": [None],
        "neither": [None],
        "li": [[None, "y"]],
        "half": [{}, {"a": "Z", "b": None}],
    },
    "pruned": {
        "zz": [1],
        "o": [{"free": {"deep": 1}, "known": {"x": "1", "y": 2}}],
        "t": [{"k": {"lost": 1}, "s": "x", "l": [{"a": 1}]}],
        "m": [{"k": {"x": "1", "y": 2}}],
        "l": [[{"x": "1", "y": 2}, {"y": 1}]],
        "any": [{"a": [{"b": 1}]}],
        "ol": [[{"x": "1", "y": 2}], {"q": 1}],
        "raw": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "foo": 1, "labels": {"a": "b"}},
                "zz": 1,
            },
            {"kind": "Pod"},
            {"apiVersion": "a/b/c", "kind": "bad kind"},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "labels": {"-": "x"}}},
            {"apiVersion": 1, "kind": "Pod"},
            {"apiVersion": "", "kind": ""},
        ],
        "whole": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "foo": 1},
                "spec": {"x": "1", "y": 2},
                "z": 1,
            }
        ],
    },
    "sets": {
        "s": [["a", "b"], ["a", "b", "a", "a", "b"]],
        "m": [[{"k": "a"}, {"k": "b"}], [{"k": "a", "v": 1}, {"k": "a", "v": 2}], [{"v": 1}]],
        "mm": [[{"k": "a"}, {"k": "a", "p": "UDP"}], [{"k": "a"}, {"k": "a", "p": "TCP"}]],
        "am": [{"z": [1, 2, 1]}],
    },
    "formats": {
        "date": ["2020-02-29", "2021-02-29", "20200101", "2020-1-1", 5, ["x"], True],
        "date_time": [
            "2020-01-01T00:00:00Z",
            "2020-01-01T00:00:00.5+02:00",
            "2020-01-01 00:00:00",
            "2020-01-01t23:59:59z",
            "2020-01-01T24:00:00Z",
        ],
        "duration": ["1h30m", "5s", "2 weeks", "forever", "1.5h", "0", "-1m", "5 ns"],
        "email": ["a@b.c", "x", "a b@c.d", "Joe <a@b.c>", "a@b"],
        "hostname": ["a.example.com", "-a", "a_b", "example", "a..b", "1.2.3.4"],
        "ipv4": ["1.2.3.4", "1.2.3", "01.2.3.4", "::1", "::ffff:1.2.3.4"],
        "ipv6": ["::1", "1.2.3.4", "fe80::1%eth0", "::ffff:1.2.3.4"],
        "cidr": ["10.0.0.0/8", "10.0.0.0", "::/64", "10.0.0.0/33"],
        "mac": ["00:11:22:33:44:55", "0011.2233.4455", "00-11-22-33-44-55", "00:11"],
        "uuid": ["00000000-0000-0000-0000-000000000000", "x", "00000000000000000000000000000000"],
        "uuid4": ["f47ac10b-58cc-4372-a567-0e02b2c3d479", "00000000-0000-0000-0000-000000000000"],
        "uri": [
            "http://a/b",
            "/path",
            "a",
            "x:y",
            "http://a b/",
            "http://[::1]:80/",
            "http://a:b/",
            "%zz",
            "/%zz",
            "http://a?%zz",
        ],
        "byte": ["aGk=", "a", "", "aGk"],
        "hexcolor": ["#fff", "fff", "#ffff"],
        "rgbcolor": ["rgb(1,2,3)", "rgb(1,2,300)"],
        "isbn": ["0321751043", "978-0321751041", "1"],
        "creditcard": ["4111 1111 1111 1111", "4111"],
        "ssn": ["123-45-6789", "123456789"],
        "bsonobjectid": ["507f1f77bcf86cd799439011", "x"],
        "k8s_short_name": ["abc", "a.b", "A"],
        "k8s_long_name": ["a.b", "A.b", "-"],
        "password": ["x"],
        "nonsense": ["x"],
    },
    "patterns": {
        "posix": ["aB_", "1"],
        "letters": ["éλ", "1"],
        "flags": ["aB", "ab", "Ab", "xC"],
        "literal": ["a.b", "axb"],
        "end": ["x", "x\n"],
        "spaces": ["a\u00a0b 12", "a 1", "a\t\u0661\u0662"],
    },
    "ruled": {"x": [1, "y"], "y": [2]},
    "clusters": {"x": ["1", 1]},
    "named": {"x": ["1"]},
    "shown": {"x": ["1"]},
}

WHOLE: list[tuple[str, Document]] = [
    ("types", {"spec": {"s": 1, "i": "x", "b": 3}}),
    ("types", {}),
    ("types", {"spec": "no object"}),
    ("types", {"spec": []}),
    ("types", {"spec": {"unknown": 1, "o": {"y": 2, "x": "z"}}}),
    ("defaults", {}),
    ("defaults", {"spec": {}}),
    ("defaults", {"spec": {"a": None, "o": None}}),
    ("pruned", {"spec": {"a": "x"}, "extra": 1, "another": {"b": 1}}),
    ("opens", {"spec": {"anything": {"goes": [1, None, {"x": None}]}}, "top": 1, "status": {"x": 1}}),
    ("statuses", {"spec": {"replicas": 3, "x": "y"}, "status": {"replicas": 9, "phase": "Up"}}),
    ("statuses", {"spec": {"replicas": -1}}),
    ("statuses", {"spec": {"replicas": 2**33}}),
    ("statuses", {"spec": {"replicas": "x"}}),
    ("statuses", {"spec": {}, "status": {"phase": "Wrong", "replicas": "x"}}),
    ("plain", {"spec": {"x": "y"}, "status": {"y": "z", "gone": 1}}),
    ("plain", {"spec": {"x": "y"}, "status": {"y": 1}}),
    ("named", {"metadata": {"name": "x-too-long"}}),
    ("named", {"metadata": {"name": "Bad_Name"}, "spec": {"x": 1}}),
    ("types", {"metadata": {"name": "labels", "labels": {"-": "x"}}, "spec": {"i": "x"}}),
]


def objects() -> Iterator[tuple[str, Document]]:
    """All objects to try, each with the definition it is of."""
    numbers = count()
    for name, tried in FIELDS.items():
        for field, given in tried.items():
            for value in given:
                yield name, {"metadata": {"name": f"n{next(numbers)}"}, "spec": {field: value}}
    for name, body in WHOLE:
        yield name, {"metadata": {"name": f"n{next(numbers)}"}, **body}


# -- bad definitions --------------------------------------------------------------------------

_letters = (f"bads{a}{b}{c}" for a in "abc" for b in "abcdefgh" for c in "abcdefgh")


def _schema(schema: Document, **more: Any) -> Document:
    return define(next(_letters), schema, **more)


def _versions(*versions: Document) -> Document:
    return define(next(_letters), versions=list(versions))


def _scale(spec_path: str, status_path: str, selector: str | None = None) -> Document:
    scale = {"specReplicasPath": spec_path, "statusReplicasPath": status_path}
    if selector is not None:
        scale["labelSelectorPath"] = selector
    return _schema(spec(a=S), below={"subresources": {"scale": scale}})


def _conversion(strategy: str, reviews: list[str] | None = None, **client: Any) -> Document:
    conversion: Document = {"strategy": strategy}
    if reviews is not None:
        conversion["webhook"] = {"clientConfig": client, "conversionReviewVersions": reviews}
    return _schema(spec(a=S), conversion=conversion)


def _selectable(schema: Document, *paths: str) -> Document:
    return _schema(schema, below={"selectableFields": [{"jsonPath": path} for path in paths]})


def _ruled(**rule: Any) -> Document:
    return {**S, "x-kubernetes-validations": [rule]}


_STATUS: dict[str, object] = {"subresources": {"status": {}}}
_BAD_PATTERNS = [
    "(?=x)",
    "[a",
    "a**",
    "\\8",
    "(x",
    "x)",
    "x{1001}",
    "*",
    "(?P<n",
    "[b-a]",
    "[[:foo:]]",
    "a\\",
    "\\pZZ",
    "(?i",
    "(?<=a)b",
    "x{2,1}",
    "\\k",
    "(?z)",
]

BAD: dict[str, Document] = {
    "no type at the root": _schema({"properties": {"spec": fields(a=S)}}),
    "an array at the root": _schema(items(S)),
    "no types": _schema(fields(spec={"properties": {"a": items({}), "b": {}}})),
    "no items": _schema(spec(a={"type": "array"})),
    "additional properties at the root": _schema(values(S)),
    "properties of both sorts": _schema(spec(a={**fields(x=S), "additionalProperties": S})),
    "properties and no others": _schema(spec(a={**fields(x=S), "additionalProperties": False})),
    "properties and any others": _schema(spec(a={**fields(x=S), "additionalProperties": True})),
    "unique items": _schema(spec(a=items(S, uniqueItems=True))),
    "unsupported words": _schema(
        spec(
            a={**S, "id": "x"},
            b=items(S, additionalItems=False),
            c={"type": "object", "patternProperties": {"x": S}},
            d={"type": "object", "definitions": {"x": S}},
            e={"type": "object", "dependencies": {"x": ["y"]}},
            f={"$ref": "#/x"},
        )
    ),
    "items of several sorts": _schema(spec(a=items([S, S]))),
    "types there are none": _schema(spec(a={"type": "null"}, b={"type": "foo"})),
    "structure inside of values": _schema(
        spec(
            a={
                **fields(x=S),
                "anyOf": [
                    {
                        "properties": {
                            "x": {**S, "description": "d", "title": "t", "default": "x", "nullable": True}
                        }
                    },
                    {"additionalProperties": S},
                ],
                "not": {
                    "x-kubernetes-preserve-unknown-fields": True,
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-int-or-string": True,
                },
            }
        )
    ),
    "values of what is not there": _schema(
        spec(
            a={
                **fields(x=S),
                "oneOf": [{"properties": {"y": {"minLength": 1}}}, {"items": {"minLength": 1}}],
                "allOf": [{"not": {"properties": {"z": {"items": {"minimum": 3}}}}}],
            }
        )
    ),
    "metadata inside of values": _schema(
        {**spec(x=S), "anyOf": [{"properties": {"metadata": {"properties": {"name": {"pattern": "x"}}}}}]}
    ),
    "labels restricted": _schema(fields(metadata=fields(labels={"type": "object"}), spec=fields(x=S))),
    "metadata of other types": _schema(fields(metadata=S, kind=I, apiVersion={"type": "object"})),
    "metadata described": _schema(fields(metadata={"type": "object", "description": "x"})),
    "metadata with a default": _schema(fields(metadata=fields(name={**S, "default": "x"}))),
    "patterns": _schema(spec(**{f"p{n}": {**S, "pattern": text} for n, text in enumerate(_BAD_PATTERNS)})),
    "preserving no unknown fields": _schema(spec(a={**OPEN, "x-kubernetes-preserve-unknown-fields": False})),
    "ints or strings": _schema(
        spec(
            a={**EITHER, **ANY},
            b={**EITHER, "anyOf": [I, S, B]},
            c={**EITHER, "allOf": [{"anyOf": [I, S]}]},
            d={**EITHER, "x-kubernetes-embedded-resource": True, "type": "object"},
        )
    ),
    "embedded resources": _schema(
        spec(
            **{
                name: {**schema, "x-kubernetes-embedded-resource": True}
                for name, schema in {"a": {}, "b": S, "c": {"type": "object"}, "d": values(S)}.items()
            }
        )
    ),
    "metadata as a resource": _schema(
        fields(metadata={"type": "object", "x-kubernetes-embedded-resource": True})
    ),
    "null at the root": _schema({**spec(a=S), "nullable": True}),
    "lists": _schema(
        spec(
            a={"type": "object", "x-kubernetes-list-type": "set"},
            b={**ANY, "x-kubernetes-list-type": "set"},
            c=items(S, **{"x-kubernetes-list-type": "foo"}),
            d=items(S, **{"x-kubernetes-list-type": "map"}),
            e=map_of(fields(k=S), "k", "z", "k"),
            f=items(S, **{"x-kubernetes-list-map-keys": ["k"]}),
            g={**set_of(S), "x-kubernetes-list-map-keys": ["k"]},
            h=map_of({**fields(k={**S, "nullable": True}, l=fields(x=S)), "nullable": True}, "k", "l"),
            i=set_of(set_of(S)),
            j=set_of(fields(x=S)),
            k=map_of({**S, "nullable": True}),
        )
    ),
    "maps": _schema(
        spec(
            a={**S, "x-kubernetes-map-type": "atomic"},
            b={"type": "object", "x-kubernetes-map-type": "x"},
            c={**ANY, "x-kubernetes-map-type": "granular"},
        )
    ),
    "defaults": _schema(
        spec(
            a={**S, "default": 1},
            b={**fields(x=S), "default": {"y": 1}},
            c={**I, "minimum": 3, "default": 1},
            d={**fields(x={**I, "maximum": 2}), "default": {"x": 5}},
            e={**S, "enum": ["a"], "default": "b"},
            f={**fields(x=S), "required": ["x"], "default": {}},
            g={**S, "nullable": True, "default": None},
            h={**I, "multipleOf": 2, "default": 3, "oneOf": [{"minimum": 5}]},
            i=items({**I, "default": "x"}),
        )
    ),
    "rules": _schema(
        spec(
            a=_ruled(rule=" "),
            b=_ruled(rule="true", message=" "),
            c=_ruled(rule="true", message="a\nb"),
            d=_ruled(rule="true\n&& true"),
            e=_ruled(rule="true", messageExpression=" "),
            f=_ruled(rule="true", reason="Nope"),
            g=_ruled(rule="true", fieldPath=" "),
            h=_ruled(rule="true", fieldPath=".a\n"),
            i=_ruled(rule="true", fieldPath=".nope"),
        )
    ),
    "a root that reaches into the status": _schema(
        {**spec(a=S), "oneOf": [{"required": ["spec"]}]}, below=_STATUS
    ),
    "an array with a status": _schema(items(S), below=_STATUS),
    "no schema": define(next(_letters)),
    "another name": _schema(spec(a=S), meta={"name": "other.crd.test"}),
    "no name": _schema(spec(a=S), meta={"name": "Other_"}),
    "a group of one word": _schema(spec(a=S), group="single"),
    "a bad group": _schema(spec(a=S), group="Bad_Group.x"),
    "no scope": _schema(spec(a=S), scope=""),
    "a bad scope": _schema(spec(a=S), scope="Galaxy"),
    "bad names": _schema(
        spec(a=S),
        names={
            "singular": "Foo_",
            "kind": "my kind",
            "listKind": "9list",
            "shortNames": ["ok", "Bad"],
            "categories": ["all", "No Way"],
        },
    ),
    "a list like its items": _schema(spec(a=S), names={"kind": "Same", "listKind": "Same"}),
    "no kind": _schema(spec(a=S), names={"kind": ""}),
    "no versions": _versions(),
    "no version to store": _versions(version("v1", spec(a=S))),
    "two versions to store": _versions(
        version("v1", spec(a=S), storage=True), version("v2", spec(a=S), storage=True)
    ),
    "a version twice": _versions(version("v1", spec(a=S), storage=True), version("v1", spec(a=S))),
    "a bad version": _versions(version("V1.0", spec(a=S), storage=True)),
    "bad schemas of versions": _versions(
        version("v1", spec(a={}), storage=True), version("v2", spec(b={"type": "array"}))
    ),
    "a version without a schema": _versions(version("v1", spec(a=S), storage=True), version("v2")),
    "deprecations": _versions(
        version("v1", spec(a=S), storage=True, deprecationWarning="x"),
        version("v2", spec(a=S), deprecated=True, deprecationWarning=""),
        version("v3", spec(a=S), deprecated=True, deprecationWarning="a\nb"),
        version("v4", spec(a=S), deprecated=True, deprecationWarning="x" * 257),
    ),
    "unknown fields everywhere": _schema(spec(a={**S, "default": "x"}), preserveUnknownFields=True),
    "columns": _schema(
        spec(a=S),
        below={
            "additionalPrinterColumns": [
                {"name": "", "type": "", "jsonPath": ""},
                {"name": "a", "type": "foo", "format": "bar", "jsonPath": "x"},
                {"name": "b", "type": "string", "jsonPath": ".spec.a"},
            ]
        },
    ),
    "a column of one version": _versions(
        version(
            "v1",
            spec(a=S),
            storage=True,
            additionalPrinterColumns=[{"name": "a", "type": "x", "jsonPath": ".a"}],
        ),
        version("v2", spec(b=S)),
    ),
    "a scale of nothing": _scale("", "x"),
    "a scale the other way round": _scale(".status.x", ".spec.x", ".foo"),
    "a scale without dots": _scale("spec.x", ".status.x", "foo"),
    "selectable fields": _selectable(
        spec(a=S, o=fields(x=S), l=items(S), m=values(S)),
        "",
        "spec.a",
        ".spec.nope",
        ".spec.o",
        ".spec.l[0]",
        ".spec.a",
        ".spec.a",
        ".spec['a']",
        ".spec.",
        ".spec.m.x",
    ),
    "a selectable name": _selectable(fields(metadata=fields(name=S), spec=fields(a=S)), ".metadata.name"),
    "too many selectable fields": _selectable(
        spec(**{f"f{n}": S for n in range(9)}), *(f".spec.f{n}" for n in range(9))
    ),
    "magic conversion": _conversion("Magic"),
    "no conversion with a webhook": _conversion("None", ["v1"], url="https://x/"),
    "conversion by no webhook": _conversion("Webhook"),
    "conversion by two webhooks": _conversion(
        "Webhook", ["v2", "v2", "V"], url="https://x/", service={"name": "a", "namespace": "b"}
    ),
    "conversion by a bad url": _conversion("Webhook", ["v1"], url="http://u:p@/x?y#z"),
    "conversion by a bad service": _conversion(
        "Webhook", ["v1"], service={"name": "", "namespace": "", "path": "a//B", "port": 70000}
    ),
    "a protected group": _schema(spec(a=S), group="x.k8s.io"),
    "a protected group by nonsense": _schema(
        spec(a=S), group="x.k8s.io", meta={"annotations": {"api-approved.kubernetes.io": "nonsense"}}
    ),
    "a bad label": _schema(spec(a=S), meta={"labels": {"-": "x"}}),
}
