"""Flags that several controllers read."""

from __future__ import annotations

from steersman.intent.settings import Flag

ROOT_CA_FILE = Flag("root-ca-file", "", "The CA bundle for service account tokens and every namespace.")
