"""Text of others that is shown to a user: messages of events, names of clients, errors of servers."""

from __future__ import annotations


def one_line(text: str) -> str:
    """A text of others in one line: it must not be able to forge another line, or to write to the terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)
