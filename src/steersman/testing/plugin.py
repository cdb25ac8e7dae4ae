"""The pytest plugin: the fixture ``cluster``, a control plane for each test, ready in milliseconds.

::

    def test_it_rolls_out(cluster):
        cluster.apply(Path("deployment.yaml"))
        cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)

    @pytest.mark.cluster(nodes=5, seed=3)
    async def test_my_operator(cluster):
        cluster.spawn(my_operator(cluster.client))
        await cluster.aio.advance(hours=1)

A test that is a coroutine runs in its cluster, under virtual time. Nothing is imported before a test uses a
cluster.
"""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steersman.testing.cluster import Cluster

SEED = "steersman_seed"
"""The fixture that every test with a cluster depends on."""
CLUSTER: pytest.StashKey[Cluster] = pytest.StashKey()
CHOSEN: pytest.StashKey[int] = pytest.StashKey()
"""The seed given on the command line."""
MARKER = (
    "cluster(seed=0, nodes=3, controllers=..., faults=(), write_latency=None, shuffle=False, webhooks={}, serve=False, "
    "speed=1.0, strict_faults=False, ...): arguments of the fixture `cluster`, which are those of steersman.testing.Cluster. With "
    "serve=True the cluster is served over HTTPS, in real time or `speed` times as fast. With strict_faults=True the test "
    "fails if one of its faults never strikes."
)
OWN = ("seed", "serve", "speed", "strict_faults")
"""Arguments of the marker that are not options of a cluster."""
STRICT = "strict_faults"


class _PlainImports:
    """Finds our own modules before pytest does, which would rewrite the assertions of every module of a plugin's distribution.

    None of them asserts anything on behalf of a test, and there are hundreds: rewriting them costs a second, and loading what
    was rewritten a tenth of one.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("steersman.") else None


# Pytest has put its own finder first before it loads plugins.
sys.meta_path.insert(0, _PlainImports)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("steersman", "simulated clusters")
    group.addoption(
        "--steersman-seed",
        metavar="N",
        help="seed of all clusters: a number, or 'random' (default: the seed of the test, or 0)",
    )
    group.addoption(
        "--steersman-seeds",
        metavar="N",
        type=int,
        default=1,
        help="run each test that uses a cluster with N seeds",
    )
    parser.addini(
        STRICT,
        "fail tests with a fault of their cluster that never struck, instead of a warning",
        type="bool",
        default=False,
    )
    group.addoption(
        "--steersman-history",
        metavar="N",
        type=int,
        default=20,
        help="number of history lines shown for a failed test (default: 20)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    for option, least in (("--steersman-seeds", 1), ("--steersman-history", 0)):
        number: int = config.getoption(option)
        if number < least:
            raise pytest.UsageError(f"{option} must be {least} or more, not {number}")
    given: str | None = config.getoption("--steersman-seed")
    if given == "random":
        # All processes of pytest-xdist must generate the same tests.
        drawn = random.SystemRandom().randrange(1 << 32)
        config.stash[CHOSEN] = getattr(config, "workerinput", {}).get(SEED, drawn)
    elif given is not None:
        try:
            config.stash[CHOSEN] = int(given)
        except ValueError:
            raise pytest.UsageError(f"--steersman-seed must be a number or 'random', not {given!r}") from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the random seed to a worker of pytest-xdist."""
    chosen = node.config.stash.get(CHOSEN, None)
    if chosen is not None:
        node.workerinput[SEED] = chosen


# -- seeds ------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if SEED not in metafunc.fixturenames:
        return
    many: int = metafunc.config.getoption("--steersman-seeds")
    first = _seed(metafunc.config, metafunc.definition.get_closest_marker("cluster"))
    if many > 1:
        metafunc.parametrize(SEED, range(first, first + many), indirect=True, ids=lambda seed: f"seed={seed}")


def _seed(config: pytest.Config, marker: pytest.Mark | None) -> int:
    """The seed of the command line, else that of the test."""
    default: int = marker.kwargs.get("seed", 0) if marker is not None else 0
    if isinstance(default, bool) or not isinstance(default, int):
        pytest.fail(f"the seed of a cluster is a whole number, not {default!r}", pytrace=False)
    return config.stash.get(CHOSEN, default)


@pytest.fixture
def steersman_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test's cluster."""
    chosen: int | None = getattr(request, "param", None)
    if chosen is None:
        return _seed(request.config, request.node.get_closest_marker("cluster"))
    return chosen


# -- the cluster ------------------------------------------------------------------------------


@pytest.fixture
def cluster(request: pytest.FixtureRequest, steersman_seed: int) -> Iterator[Cluster]:
    """A control plane with nodes, under virtual time. See steersman.testing.Cluster."""
    from steersman.testing import Cluster
    from steersman.testing.options import NAMES, check_names

    marker = request.node.get_closest_marker("cluster")
    given = dict(marker.kwargs) if marker is not None else {}
    options: Any = {name: value for name, value in given.items() if name not in OWN}
    problem = ""
    try:
        if marker is not None and marker.args:
            raise TypeError(f"its arguments have names, such as nodes=5, but {marker.args[0]!r} has none")
        check_names(given, (*OWN, *NAMES))
        made = Cluster(steersman_seed, **options)
    except (TypeError, ValueError, LookupError) as error:
        # A mistake in the marker: where in this program it was noticed does not matter.
        if marker is None:
            raise
        problem = f"pytest.mark.cluster: {error}"
    if problem:
        pytest.fail(problem, pytrace=False)
    try:
        request.node.stash[CLUSTER] = made
        if given.get("serve", False):
            made.serve(given.get("speed", 1.0))
        yield made
    finally:
        made.close()


# -- coroutine tests --------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> Generator[None, Any, Any]:
    """Wrap coroutine tests that use a cluster before other plugins do: they run in its event loop."""
    made = yield
    for item in made if isinstance(made, list) else (made,):
        if isinstance(item, pytest.Function) and _is_ours(item):
            item.obj = _in_cluster(item, item.obj)
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """The same for an item that was recreated, as plugins that repeat tests do."""
    if not _is_ours(pyfuncitem):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    _in_cluster(pyfuncitem, pyfuncitem.obj)(**arguments)
    return True


def _is_ours(item: pytest.Function) -> bool:
    if SEED not in item.fixturenames or not inspect.iscoroutinefunction(item.obj):
        return False
    marker = item.get_closest_marker("cluster")
    return marker is None or not marker.kwargs.get("serve")


def _in_cluster(item: pytest.Item, test: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        item.stash[CLUSTER].run(test(*args, **kwargs))

    return run


# -- faults that never struck -----------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Report faults that never struck: a test that passes without them does not test what it says."""
    yield
    made = item.stash.get(CLUSTER, None)
    if made is None or not made.unused_faults:
        return
    from steersman.testing import UnusedFault

    warning = UnusedFault.of(made.unused_faults)
    marker = item.get_closest_marker("cluster")
    strict: bool = item.config.getini(STRICT)
    if (marker.kwargs if marker is not None else {}).get(STRICT, strict):
        pytest.fail(f"a fault {warning}", pytrace=False)
    item.warn(warning)


# -- failure reports --------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    made = item.stash.get(CLUSTER, None)
    if made is not None and report.when != "teardown" and report.failed:
        # The message of a wait that timed out ends with the history already.
        told = call.excinfo is not None and _has_history(call.excinfo.value)
        most = 0 if told else item.config.getoption("--steersman-history")
        report.sections.append(("steersman", _report(made, most)))
    return report


def _has_history(error: BaseException) -> bool:
    from steersman.testing.waiting import WaitTimeout

    return isinstance(error, WaitTimeout)


def _report(made: Cluster, most: int) -> str:
    lines = [
        f"seed {made.seed} (repeat with --steersman-seed={made.seed}), cluster time {made.now:%Y-%m-%d %H:%M:%S}"
    ]
    if most > 0:
        lines += [str(entry) for entry in made.history()[-most:]]
    return "\n".join(lines)
