"""A hook of mkdocs: makes one site of docs/ and of the Markdown files at the root of the repository.

SECURITY.md, CONTRIBUTING.md and CHANGELOG.md stay where readers of a repository look for them, and become pages of the site. A
link to any other file outside of docs/, such as an example or a manifest, leads to a page that shows the file. So every link works
in a checkout, in the browser of a repository host and on the site, and ``mkdocs build --strict`` finds those that do not.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
ROOT_PAGES = {
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
}
"""Files at the root, and the page of the site for each. The site has a home page of its own."""
SHOWN = "files/"
"""The folder of the site with the pages that show files of the repository."""
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".toml": "toml", ".service": "ini"}
HIDDEN = ("__pycache__",)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of files outside of docs/."""
    for name, uri in ROOT_PAGES.items():
        if name != "README.md":
            files.append(File.generated(config, uri, content=(ROOT / name).read_text("utf-8")))
    sources = [file for file in files.documentation_pages() if not file.src_uri.startswith(SHOWN)]
    linked = {
        path
        for file in sources
        for path in _linked(file.src_uri, file.content_string)
        if not path.startswith("docs/") and path not in ROOT_PAGES
    }
    for path in sorted(_with_contents(linked)):
        files.append(File.generated(config, _page_of(path), content=_shown(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at the pages of the site."""
    uri = page.file.src_uri
    if uri.startswith(SHOWN):
        return markdown

    def replaced(match: re.Match[str]) -> str:
        path = _repository_path(uri, match[1])
        target = None if path is None else _target(path)
        return match[0] if target is None else _relative(uri, target) + (match[2] or "")

    return LINK.sub(replaced, markdown)


# -- links ------------------------------------------------------------------------------------


def _linked(uri: str, markdown: str) -> Iterator[str]:
    """The paths in the repository that a page links to."""
    for match in LINK.finditer(markdown):
        path = _repository_path(uri, match[1])
        if path is not None:
            yield path


def _repository_path(uri: str, link: str) -> str | None:
    """The path from the root of the repository that a link of a page means; None where there is no such file."""
    if "://" in link or link.startswith(("/", "mailto:")):
        return None
    names = {page: name for name, page in ROOT_PAGES.items() if name != "README.md"}
    origin = names.get(uri, f"docs/{uri}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    return path if not path.startswith("..") and (ROOT / path).exists() else None


def _target(path: str) -> str | None:
    """The page of the site for a path in the repository; None where mkdocs finds it by itself."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return ROOT_PAGES.get(path) or _page_of(path)


def _page_of(path: str) -> str:
    """The page that shows a file or a directory."""
    return f"{SHOWN}{path}/index.md" if (ROOT / path).is_dir() else f"{SHOWN}{path}.md"


def _relative(uri: str, target: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(uri) or ".")


# -- pages that show files --------------------------------------------------------------------


def _with_contents(paths: set[str]) -> set[str]:
    """The paths, and those of the files in the directories among them."""
    inside = {f"{path}/{name}" for path in paths for name in _names(path)}
    return paths | {path for path in inside if (ROOT / path).is_file()}


def _names(path: str) -> list[str]:
    folder = ROOT / path
    return sorted(name for name in os.listdir(folder) if name not in HIDDEN) if folder.is_dir() else []


def _shown(path: str) -> str:
    """The Markdown of the page for a file or a directory."""
    if (ROOT / path).is_dir():
        names = [name for name in _names(path) if (ROOT / path / name).is_file()]
        return "\n".join([f"# {path}/", "", *(f"- [{name}]({name}.md)" for name in names)]) + "\n"
    text = (ROOT / path).read_text("utf-8")
    fence = "`" * 6
    return f"# {path}\n\n{fence}{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}{fence}\n"
