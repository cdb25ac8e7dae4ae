"""The documentation as a site: it builds without warnings, every link and anchor leads somewhere, and nothing comes from another host."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from steersman.manager.flag_table import FLAGS
from steersman.manager.verbs import VERBS
from steersman.testing import Cluster
from tools.docs_reference import PREFIX, found_annotations

ROOT = Path(__file__).parents[2]
FOREIGN = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//|<link[^>]+href=["']?(?:https?:)?//(?!127)"""
)
"""What a browser loads from another host without being asked."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``mkdocs build --strict`` builds it."""
    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    found: list[str] = []

    class Warnings(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler = Warnings(logging.WARNING)
    logging.getLogger("mkdocs").addHandler(handler)
    try:
        build(config)
    except Exception as error:
        raise AssertionError("\n".join(found)) from error
    finally:
        logging.getLogger("mkdocs").removeHandler(handler)
    assert found == []
    return folder


def test_it_builds_without_warnings_and_loads_nothing_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    foreign = [
        f"{page.relative_to(site)}: {match[0]}"
        for page in pages
        for match in FOREIGN.finditer(page.read_text())
    ]
    assert foreign == []


def test_the_reference_names_every_verb_flag_annotation_and_method(site: Path) -> None:
    def page(name: str) -> str:
        return (site / "reference" / f"{name}.html").read_text()

    assert [verb.name for verb in VERBS if f'id="{verb.name}"' not in page("commands")] == []
    assert [flag.name for flag in FLAGS if f"--{flag.name}<" not in page("flags")] == []
    public = [name for name in dir(Cluster) if not name.startswith("_")]
    assert [name for name in public if f'id="cluster{name.replace(".", "")}"' not in page("python")] == []
    assert "generated:" not in "".join(map(page, ("commands", "flags", "annotations", "faults", "python")))


def test_every_annotation_of_the_simulation_is_documented() -> None:
    documented = set(found_annotations())
    named = {
        match
        for path in (ROOT / "src" / "steersman" / "sim").rglob("*.py")
        for match in re.findall(
            rf'(?:{re.escape(PREFIX)}|\{{PREFIX\}}|PREFIX \+ ")([a-z]+(?:-[a-z]+)*)', path.read_text()
        )
    }
    others = {"hostpath", "never"}
    """A provisioner and a finalizer."""
    assert named - others <= documented


# -- files that are read outside of the site --------------------------------------------------


def anchors(markdown: str) -> set[str]:
    """The anchors of headings, as repository hosts make them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda path: path.name
)
def test_links_lead_to_files_and_headings_that_exist(path: Path) -> None:
    broken = []
    for link, anchor in re.findall(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)", path.read_text()):
        target = (path.parent / link).resolve() if link else path
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            broken.append(f"{link}#{anchor}")
    assert broken == []
