"""A progress bar on standard error, where that is a terminal; otherwise nothing is shown."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBar:
    """A bar with a text, gone when the work is done. Use it in a ``with``."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        if sys.stderr.isatty():
            # Imported when needed: rich takes longer to import than most of what is done here.
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.fields[title]}"),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task("", total=None, title=self._title)
            self._progress.start()
        return self

    def update(self, done: float, total: float, text: str = "", title: str = "") -> None:
        """Show how much is done."""
        if self._progress is not None and self._task is not None:
            self._title = title or self._title
            self._progress.update(
                self._task, completed=done, total=total or None, description=text, title=self._title
            )

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
