"""The nesting depth of plain JSON documents, and its limit, which keeps every recursion over them short."""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 128
"""The number of levels a document may be nested, in JSON, YAML and protobuf, and after a patch.

differs: upstream's limit is 10,000 levels; no object needs more than a few dozen.
"""


def depth_of(document: Any) -> int:
    """Return the number of levels of a document: 0 for a scalar. Measured without recursion."""
    depth, level = 0, [document] if isinstance(document, (dict, list)) else []
    while level:
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, (dict, list))
        ]
        depth += 1
    return depth
