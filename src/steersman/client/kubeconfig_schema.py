"""Parses a kubeconfig file into validated entries. Each error names the file and the entry."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from steersman.api import go_yaml
from steersman.client.config import ConfigError, Pem


class Entry(msgspec.Struct, frozen=True):
    """One mapping of the file. As everywhere in Kubernetes, null is the same as absent."""

    file: str
    where: str
    """File and entry, the beginning of error messages."""
    fields: Mapping[str, Any]

    def error(self, message: str) -> ConfigError:
        return ConfigError(f"{self.where}: {message}")

    def get(self, name: str) -> Any:
        return self.fields.get(name)

    def text(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(f"{name} must be a string; put it in quotes")
        return value

    def flag(self, name: str) -> bool:
        value = self.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.error(f"{name} must be true or false")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(f"{name} must be a list of strings; put its items in quotes")
        return tuple(value)

    def child(self, name: str) -> Entry | None:
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(f"{name} must be a mapping")
        return Entry(self.file, f"{self.where}: {name}", value)

    def children(self, name: str) -> list[Entry]:
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(f"{name} must be a list of mappings")
        return [Entry(self.file, f"{self.where}: {name}[{i}]", item) for i, item in enumerate(value)]

    def path(self, name: str) -> str:
        """Return the absolute path of a file that is relative to the kubeconfig."""
        value = self.text(name)
        return str(Path(os.path.abspath(self.file)).parent / value) if value else ""

    def readable(self, name: str, path: str) -> None:
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise self.error(f"{name}: {path}: {_reason(error)}; correct the path") from None
        except ValueError:
            # A NUL character, or one that the file system's encoding does not have.
            raise self.error(f"{name} is not a path; correct it") from None

    def pem(self, name: str) -> Pem:
        """Return the PEM data given as a file (``name``) or inline (``name-data``)."""
        path, data = self.path(name), self.text(f"{name}-data")
        if path and data:
            raise self.error(f"{name} and {name}-data are both given; keep one")
        if path:
            self.readable(name, path)
            return Pem(path=path)
        if not data:
            return Pem()
        try:
            return Pem(data=base64.b64decode("".join(data.split()), validate=True))
        except ValueError:
            raise self.error(f"{name}-data is not base64; encode the PEM file with base64 -w0") from None


def read(path: str, *, missing_ok: bool) -> Entry | None:
    """Parse a file into its top-level mapping. Returns None for a missing file if ``missing_ok``."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        if missing_ok:
            return None
        raise ConfigError(f"{path}: the kubeconfig file does not exist; correct the path") from None
    except OSError as error:
        raise ConfigError(f"{path}: {_reason(error)}; make the kubeconfig file readable") from None
    try:
        parsed, _ = go_yaml.decode(content)
    except go_yaml.YamlSyntaxError as error:
        at = f" at line {error.line}, column {error.column}" if error.line else ""
        raise ConfigError(f"{path}: not YAML{at}: {error.problem}; correct the file") from None
    except go_yaml.MalformedDocument:
        # Without the reason, which quotes anchors: a password that begins with an asterisk is one.
        raise ConfigError(
            f"{path}: not YAML for a kubeconfig: check its anchors, aliases and numbers"
        ) from None
    document = Entry(path, path, parsed if isinstance(parsed, dict) else {})
    if parsed is not None and not isinstance(parsed, dict):
        raise document.error("not a kubeconfig: its content must be a mapping")
    version, kind = document.text("apiVersion"), document.text("kind")
    if version not in ("", "v1") or kind not in ("", "Config"):
        raise document.error(f"is a {version} {kind}, not a kubeconfig; it must be a v1 Config")
    return document


def named(document: Entry, section: str) -> dict[str, Entry]:
    """Return a section, a list of ``{name, <entry>}``, as a mapping by name in the order of the file."""
    what = section.removesuffix("s")
    entries: dict[str, Entry] = {}
    for item in document.children(section):
        name = item.text("name")
        if not name:
            raise item.error("name is missing; name the entry or remove it")
        if name in entries:
            raise document.error(f'{section}: "{name}" is defined twice; remove one')
        content = item.get(what)
        if content is not None and not isinstance(content, dict):
            raise item.error(f"{what} must be a mapping")
        entries[name] = Entry(document.file, f'{document.where}: {what} "{name}"', content or {})
    return entries


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
