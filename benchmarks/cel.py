"""CEL: microseconds per evaluation, of our closures and of cel-expr-python where it is installed, and what loading costs.

python -m benchmarks.cel
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "labels": {"app": "web", "tier": "front"}},
    "spec": {
        "replicas": 3,
        "minReplicas": 1,
        "maxReplicas": 5,
        "host": "web.example.com",
        "ports": [{"name": f"p{number}", "port": 8000 + number} for number in range(10)],
    },
}
EXPRESSIONS = {
    "compare": "self.spec.minReplicas <= self.spec.replicas && self.spec.replicas <= self.spec.maxReplicas",
    "strings": "self.spec.host.endsWith('.example.com') && !self.spec.host.startsWith('-')",
    "pattern": "self.spec.host.matches('^[a-z0-9.-]+$')",
    "has": "!has(self.spec.paused) || self.spec.paused == false",
    "loop of 10": "self.spec.ports.all(p, p.port > 1024 && p.name != '')",
    "nested loop of 100": "self.spec.ports.all(p, self.spec.ports.exists_one(q, q.name == p.name))",
    "map and sum": "self.spec.ports.map(p, p.port).filter(n, n > 8001).size() > 2",
}
LIBRARIES = {
    "quantity": "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
    "url": "url('https://a.b/c').getHost() == 'a.b'",
    "ip": "ip('10.0.0.1').family() == 4",
    "cidr": "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
    "semver": "semver('1.2.3').major() == 1",
    "format": "!format.dns1123Label().validate('a').hasValue()",
    "regex find": "'a1'.find('[0-9]') == '1'",
    "lists": "[1, 2].sum() == 3 && [1, 2].isSorted()",
    "strings": "'a,b'.split(',').join('-') == 'a-b'",
    "sets": "sets.contains([1, 2], [1])",
    "two variables": "{'a': 1}.transformList(k, v, v) == [1]",
    "optionals": "{'a': 1}.?b.orValue(2) == 2",
}


def ours(source: str) -> Callable[[], object]:
    from steersman.api.cel import Environment
    from steersman.api.cel.checker import checked
    from steersman.api.cel.libraries import TYPE_NAMES
    from steersman.api.cel.program import compile_program
    from steersman.api.cel.types import DYN

    expr, types = checked(source, Environment().with_variables(self=DYN))
    program = compile_program(expr, ("self",), types, type_names=TYPE_NAMES)
    return lambda: program.evaluate(OBJECT).value


def cel_expr_python(source: str) -> Callable[[], object]:
    from cel_expr_python import cel  # type: ignore[import-not-found]

    environment = cel.NewEnv(variables={"self": cel.Type.DYN}, extensions=_extensions())
    expression = environment.compile(source)

    def evaluate() -> object:
        value = expression.eval(environment.Activation({"self": OBJECT}))
        found = value.plain_value() if callable(getattr(value, "plain_value", None)) else value.value()
        if found is not True:
            raise ValueError(found)
        return True

    return evaluate


def _extensions() -> list[Any]:
    made: list[Any] = []
    for module, name in (
        ("ext_strings", "ExtStrings"),
        ("ext_optional", "ExtOptional"),
        ("ext_math", "ExtMath"),
    ):
        try:
            made.append(getattr(import_module(f"cel_expr_python.ext.{module}"), name)())
        except (ImportError, AttributeError):
            continue
    return made


def microseconds(evaluate: Callable[[], object]) -> float:
    """The best of several rounds, each of at least some 20 ms."""
    count = 1
    while True:
        begin = time.process_time()
        for _ in range(count):
            evaluate()
        if time.process_time() - begin > 0.02:
            break
        count *= 2
    rounds = []
    for _ in range(5):
        begin = time.process_time()
        for _ in range(count):
            evaluate()
        rounds.append((time.process_time() - begin) / count)
    return min(rounds) * 1e6


def loading(statement: str) -> dict[str, float]:
    """The milliseconds and megabytes that an import costs, in a process of its own."""
    code = (
        "import json, resource, time\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; begin = time.process_time()\n"
        f"{statement}\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(json.dumps({'ms': (time.process_time() - begin) * 1000, 'MB': (after - before) / 1024}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


RULES = (
    "self.minReplicas <= self.replicas",
    "self.replicas <= self.maxReplicas",
    "self.host.endsWith('.example.com')",
    "!self.host.startsWith('-')",
    "!has(self.paused) || self.paused == false",
    "self.ports.all(p, p.port > 1024)",
    "self.ports.exists(p, p.name == 'p1')",
    "self.ports.size() <= 10",
    "self.replicas != 7",
    "!has(oldSelf.host) || self.host == oldSelf.host",
)


def custom_resources(rules: tuple[str, ...], count: int = 3000) -> float:
    """The microseconds of processor time to create one object of a definition with these rules, through `rest`."""
    from steersman.api.clock import RealClock
    from steersman.server import crd
    from steersman.server.auth.users import ADMIN
    from steersman.server.codec.convert import to_struct
    from steersman.server.crd.custom import CustomResource
    from steersman.server.rest.perform import perform
    from steersman.server.rest.request import Request
    from steersman.server.server import Server

    integer, text = {"type": "integer"}, {"type": "string", "maxLength": 60}
    port = {"type": "object", "properties": {"name": text, "port": integer}}
    spec = {
        "type": "object",
        "required": ["replicas"],
        "properties": {
            **{name: {**integer, "minimum": 0} for name in ("replicas", "minReplicas", "maxReplicas")},
            "host": {**text, "pattern": "^[a-z.]+$"},
            "paused": {"type": "boolean"},
            "ports": {"type": "array", "maxItems": 10, "items": port},
        },
        **({"x-kubernetes-validations": [{"rule": rule} for rule in rules]} if rules else {}),
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    server = Server(RealClock())
    crd.install(server)
    resource = server.registry.find(crd.GROUP, crd.VERSION, crd.PLURAL)
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }
    perform(server, Request(ADMIN, "create", resource), to_struct(resource.type, definition))
    widgets = server.registry.find("example.com", "v1", "widgets")
    bodies = [
        to_struct(CustomResource, {"metadata": {"name": f"w{index}"}, "spec": OBJECT["spec"]})
        for index in range(count)
    ]
    request = Request(ADMIN, "create", widgets, field_manager="benchmark")
    begin = time.process_time()
    for body in bodies:
        perform(server, request, body)
    return (time.process_time() - begin) / count * 1e6


def main() -> None:
    engines: dict[str, Callable[[str], Callable[[], object]]] = {"closures": ours}
    imports = {"closures": "import steersman.api.cel.program, steersman.api.cel.checker"}
    if find_spec("cel_expr_python") is None:
        print("cel-expr-python is not installed: measured alone")
    else:
        engines["cel-expr-python"] = cel_expr_python
        imports["cel-expr-python"] = "import cel_expr_python.cel"
    for name, statement in imports.items():
        cost = loading(statement)
        print(f"loading {name}: {cost['ms']:.0f} ms, {cost['MB']:.1f} MB")
    for kind, table in (("µs per evaluation", EXPRESSIONS), ("µs with Kubernetes' libraries", LIBRARIES)):
        print(f"\n{kind}")
        for name, source in table.items():
            cells = []
            for engine, prepare in engines.items():
                try:
                    evaluate = prepare(source)
                    assert evaluate() is True
                    cells.append(f"{engine} {microseconds(evaluate):8.2f}")
                except Exception as error:
                    cells.append(f"{engine}   failed: {str(error).splitlines()[0][:60]}")
            print(f"  {name:20} {'   '.join(cells)}")
    plain, ruled = (min(custom_resources(rules) for _ in range(5)) for rules in ((), RULES))
    print("\nµs of processor time to create a custom resource")
    print(f"  without rules {plain:.1f}   with ten rules {ruled:.1f}   ratio {ruled / plain:.2f}")


if __name__ == "__main__":
    main()
