"""The pytest plugin, as somebody meets it who installed the package and wrote a test."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from steersman.testing import Cluster

pytest_plugins = "pytester"

LONER = ("-p", "no:asyncio", "-p", "no:cacheprovider")
"""Nothing but pytest and this plugin."""
AUTO = (
    "-o",
    "asyncio_mode=auto",
    "-o",
    "asyncio_default_fixture_loop_scope=function",
    "-p",
    "no:cacheprovider",
)


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """What a run inside of this one loads is forgotten after it, and must not be loaded twice."""
    with Cluster() as cluster:
        cluster.serve()


def test_a_test_needs_nothing_but_to_ask_for_a_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_nodes(cluster):
            assert len(cluster.list("nodes")) == 3
            assert cluster.seed == 0

        def test_each_test_has_its_own(cluster):
            assert [each.metadata.name for each in cluster.list("cm", "default")] == ["kube-root-ca.crt"]
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

        def test_and_another_one(cluster):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        """
    )
    pytester.runpytest(*LONER, "--strict-markers").assert_outcomes(passed=3)


@pytest.mark.parametrize("others", [LONER, AUTO], ids=["alone", "beside pytest-asyncio"])
def test_coroutines_run_in_their_cluster(pytester: pytest.Pytester, others: tuple[str, ...]) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest

        @pytest.fixture
        def busy(cluster):
            return cluster

        async def test_an_hour(cluster):
            before = cluster.now
            await asyncio.sleep(3600)
            assert (cluster.now - before).total_seconds() == 3600

        async def test_by_another_fixture(busy):
            assert asyncio.get_running_loop() is busy.world.loop

        class TestMethods:
            @pytest.mark.parametrize("hours", [1, 2])
            async def test_hours(self, hours, cluster):
                await cluster.aio.advance(hours=hours)

        async def test_failing(cluster):
            await asyncio.sleep(1)
            assert not "reached"
        """
    )
    result = pytester.runpytest(*others)
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(['*assert not "reached"*'])


def test_a_fixture_of_ones_own_by_that_name_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest

        @pytest.fixture
        def cluster():
            return "kind"

        async def test_real_time(cluster):
            assert cluster == "kind"
            assert "steersman" not in type(asyncio.get_running_loop()).__module__
        """
    )
    pytester.runpytest(*AUTO).assert_outcomes(passed=1)


def test_a_marker_says_what_the_cluster_is_made_of(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from steersman.sim import faults

        pytestmark = pytest.mark.cluster(nodes=1)

        def test_of_the_module(cluster):
            assert len(cluster.list("nodes")) == 1

        @pytest.mark.cluster(nodes=5, seed=3, controllers=["deployment"], faults=[faults.error_response(500)])
        def test_of_its_own(cluster):
            assert len(cluster.list("nodes")) == 5
            assert cluster.seed == 3
            assert [each.name for each in cluster.manager.controllers] == ["deployment-controller"]

        @pytest.mark.cluster(serve=True)
        def test_served(cluster):
            assert cluster.url.startswith("https://127.0.0.1:")
        """
    )
    pytester.runpytest(*LONER, "--strict-markers").assert_outcomes(passed=3)


def test_a_marker_with_a_mistake_in_it_fails_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.cluster(knots=5)
        def test_it(cluster):
            pass
        """
    )
    result = pytester.runpytest(*LONER)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["pytest.mark.cluster: a cluster has no option 'knots'; did you mean 'nodes'?"]
    )
    result.stdout.no_fnmatch_line("*During handling*")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("5", "its arguments have names, such as nodes=5, but 5 has none"),
        ("nodes=-1", "nodes must be 0 or more, not -1"),
        ("gates={'GenericWorklod': True}", "*did you mean 'GenericWorkload'?"),
        ("strict_fault=True", "*did you mean 'strict_faults'?"),
    ],
)
def test_the_arguments_of_a_marker_are_checked(
    pytester: pytest.Pytester, arguments: str, message: str
) -> None:
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.cluster({arguments})\ndef test_it(cluster): pass")
    result = pytester.runpytest(*LONER)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"pytest.mark.cluster: {message}"])


UNUSED = """
    import pytest
    from steersman.sim import faults

    pytestmark = pytest.mark.cluster(faults=[faults.crash_after_write(500)])

    def test_plain(cluster):
        pass

    @pytest.mark.cluster(faults=[faults.crash_after_write(500)], strict_faults=%s)
    def test_marked(cluster):
        pass
"""


def test_a_fault_that_never_struck_is_a_warning_of_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UNUSED % True)
    result = pytester.runpytest(*LONER)
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines(["a fault never struck: crash_after_write(500)"])
    result.stdout.fnmatch_lines(["*UnusedFault: never struck: crash_after_write(500)"])


def test_an_option_makes_faults_that_never_struck_failures(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstrict_faults = true")
    pytester.makepyfile(UNUSED % False)
    result = pytester.runpytest(*LONER)
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines(["FAILED *::test_plain*"])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--steersman-seeds=0", "*--steersman-seeds must be 1 or more, not 0*"),
        ("--steersman-history=-1", "*--steersman-history must be 0 or more, not -1*"),
    ],
)
def test_options_out_of_range_are_refused(pytester: pytest.Pytester, option: str, message: str) -> None:
    result = pytester.runpytest(*LONER, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


SEEDS = """
    import pytest

    def test_plain(cluster):
        print("seed", cluster.seed)

    @pytest.mark.cluster(seed=7)
    @pytest.mark.parametrize("letter", "ab")
    def test_marked(cluster, letter):
        print("seed", cluster.seed)

    def test_without():
        pass
"""


@pytest.mark.parametrize(
    ("options", "seeds", "passed"),
    [
        ((), [0, 7, 7], 4),
        (("--steersman-seed=9",), [9, 9, 9], 4),
        (("--steersman-seeds=2",), [0, 1, 7, 7, 8, 8], 7),
        (("--steersman-seed=4", "--steersman-seeds=2"), [4, 4, 4, 5, 5, 5], 7),
    ],
)
def test_seeds_come_from_the_command_line_or_from_the_test(
    pytester: pytest.Pytester, options: tuple[str, ...], seeds: list[int], passed: int
) -> None:
    pytester.makepyfile(SEEDS)
    result = pytester.runpytest(*LONER, "-s", *options)
    result.assert_outcomes(passed=passed)
    assert sorted(map(int, re.findall(r"seed (\d+)", result.stdout.str()))) == seeds


def test_a_failure_tells_its_seed_and_what_happened(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(cluster):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
            cluster.patch("cm", "a", {"data": {"key": "value"}})
            cluster.advance(minutes=5)
            assert not cluster.get("cm", "a")
        """
    )
    result = pytester.runpytest(*LONER, "--steersman-seed=12")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- steersman -*",
            "seed 12 (repeat with --steersman-seed=12), cluster time 2026-01-01 00:05:00",
            "00:00:00.000 you: configmaps default/a created",
            "00:00:00.000 you: configmaps default/a data = *",
        ]
    )
    brief = pytester.runpytest(*LONER, "--steersman-history=0")
    brief.stdout.fnmatch_lines(["seed 0 (repeat with --steersman-seed=0)*"])
    brief.stdout.no_fnmatch_line("*you: configmaps*")


def test_a_wait_that_times_out_shows_the_history_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In continuous integration pytest's own summary repeats messages whole.
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(
        """
        def test_it(cluster):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
            cluster.wait_until(lambda: cluster.get("cm", "a").data, timeout=5)
        """
    )
    result = pytester.runpytest(*LONER)
    result.assert_outcomes(failed=1)
    shown = [line for line in result.stdout.lines if line.endswith("you: configmaps default/a created")]
    assert len(shown) == 1
    result.stdout.fnmatch_lines(["E *last changes:*", "*- steersman -*", "seed 0 (repeat with *"])


def test_a_random_seed_is_told_so_that_it_can_be_had_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(cluster): assert not cluster.list('nodes')")
    result = pytester.runpytest(*LONER, "--steersman-seed=random")
    result.assert_outcomes(failed=1)
    (line,) = [line for line in result.stdout.lines if line.startswith("seed ")]
    seed = line.split()[1]
    again = pytester.runpytest(*LONER, f"--steersman-seed={seed}")
    again.stdout.fnmatch_lines([f"seed {seed} *"])


def test_all_processes_of_a_run_draw_the_same_seed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(cluster): assert cluster.seed != 0")
    options = ("--steersman-seed=random", "--steersman-seeds=2", "-n2")
    pytester.runpytest_subprocess(*LONER, *options).assert_outcomes(passed=2)


def test_what_a_fixture_fails_with_is_told_as_well(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def operator(cluster):
            cluster.get("Deployment", "operator")

        def test_it(cluster, operator):
            pass
        """
    )
    result = pytester.runpytest(*LONER)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["seed 0 (repeat with --steersman-seed=0)*"])


def test_a_seed_that_is_no_number_is_refused(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest(*LONER, "--steersman-seed=abc")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--steersman-seed must be a number or 'random', not 'abc'*"])


def test_the_plugin_loads_nothing_before_a_test_asks_for_a_cluster() -> None:
    look = (
        "import sys, steersman.testing.plugin; print(*(n for n in sys.modules if n.startswith('steersman')))"
    )
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["steersman", "steersman.testing", "steersman.testing.plugin"]


def test_pytest_does_not_rewrite_the_assertions_of_our_modules(pytester: pytest.Pytester) -> None:
    """It marks all modules of a distribution that has a plugin, when that is installed as a wheel."""
    pytester.makeconftest('import pytest; pytest.register_assert_rewrite("steersman")')
    pytester.makepyfile(
        """
        import sys

        def test_it(cluster):
            ours = [module for name, module in sys.modules.items() if name.startswith("steersman.")]
            rewritten = [module.__name__ for module in ours if "Rewrit" in type(module.__loader__).__name__]
            assert len(ours) > 100
            # Those are loaded before the plugin can say so.
            assert set(rewritten) <= {"steersman.testing", "steersman.testing.plugin"}
        """
    )
    pytester.runpytest_subprocess(*LONER).assert_outcomes(passed=1)
