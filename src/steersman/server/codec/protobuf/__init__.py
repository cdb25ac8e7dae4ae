"""Bodies in protobuf, as typed clients send them for built-in kinds, to plain JSON documents.

Answers are never written so: every client that sends protobuf also takes JSON.

::

    envelope    what a body says it is      fields    what the numbers in it stand for (``fields.json``)
    messages    messages to documents       wire      tags, varints and lengths

Nothing of ``fields.json`` is read before the first such body.
"""

from __future__ import annotations

from steersman.server.codec.protobuf.envelope import MAGIC, decode

__all__ = ["MAGIC", "decode"]
