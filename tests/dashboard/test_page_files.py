"""The files of the dashboard's page: complete, small, and with nothing that inserts HTML or asks another host."""

from __future__ import annotations

import re
from importlib import resources

import pytest

FILES = {
    each.name: each.read_text("utf-8")
    for each in resources.files("steersman.dashboard").joinpath("static").iterdir()
}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
LIMIT = 110_000
"""Bytes of all files, unpacked."""


def test_every_file_that_is_named_is_there_and_none_besides() -> None:
    named = {"index.html"}
    for name, text in FILES.items():
        if name == "index.html":
            named |= set(re.findall(r'(?:src|href)="(\w[\w.]*)"', text))
        named |= set(re.findall(r'from "\./([\w.]+)"', text))
    assert named == set(FILES)


def test_modules_are_loaded_ahead_so_that_none_waits_for_another() -> None:
    preloaded = set(re.findall(r'rel="modulepreload" href="([\w.]+)"', FILES["index.html"]))
    imported = {name for text in FILES.values() for name in re.findall(r'from "\./([\w.]+)"', text)}
    assert preloaded == imported


@pytest.mark.parametrize("name", SCRIPTS)
def test_texts_of_objects_can_not_become_html_or_code(name: str) -> None:
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc|javascript:"
    assert re.findall(ways, FILES[name]) == []


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_address_of_another_host_is_named(name: str) -> None:
    found = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`)]*", FILES[name]))
    assert {each for each in found if "www.w3.org/2000/svg" not in each} == set()


def test_the_policy_allows_what_the_page_has() -> None:
    # Content-Security-Policy: script-src 'self'; style-src 'self'
    page = FILES["index.html"]
    assert re.findall(r"<script(?![^>]*src=)", page) == [], "no script in the page itself"
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == [], "no styles and no handlers in attributes"


def test_the_page_stays_small() -> None:
    assert sum(len(text.encode()) for text in FILES.values()) < LIMIT
