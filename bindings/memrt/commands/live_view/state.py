"""State of the live view, changed by keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from memrt.commands.live_view.tables import SORTS, Choice

_SORT_STEPS = {"s": 1, "right": 1, "S": -1, "left": -1}
_LINE_STEPS = {"down": 1, "j": 1, "up": -1, "k": -1}
_PAGE_STEPS = {"page down": 1, " ": 1, "page up": -1}


@dataclass
class State:
    """Rows, order and position of the view."""

    sort: str = "live"
    text: str = ""
    """Filter of the list."""
    tree: bool = False
    pid: int | None = None
    """Process of the detail view; None: the list."""
    typing: bool = False
    """Whether keys are letters of the filter."""
    selected: int = 0
    """Process id of the selected row of the list; 0: the first row."""
    asked: bool = False
    """Whether to ask the process of the detail view for its allocation sites."""
    offset: int = 0
    """First visible line of the detail view."""
    height: int = 10
    """Lines of the last drawing, as the step of a page."""
    pids: list[int] = field(default_factory=list)
    """Process ids of the last drawing, from top to bottom."""
    ended: bool = False

    @property
    def choice(self) -> Choice:
        """Return sort, filter and tree, as the tables need."""
        return Choice(self.sort, self.text, self.tree)

    def press(self, key: str) -> None:
        """Change the state by a key."""
        if self.typing:
            self._type(key)
        elif key in ("q", "Q"):
            self.ended = True
        elif key in _SORT_STEPS:
            self.sort = SORTS[(SORTS.index(self.sort) + _SORT_STEPS[key]) % len(SORTS)]
        elif key in _LINE_STEPS:
            self._move(_LINE_STEPS[key])
        elif key in _PAGE_STEPS:
            self._move(_PAGE_STEPS[key] * self.height)
        elif self.pid is None:
            self._press_in_list(key)
        elif key in ("escape", "backspace"):
            self.pid, self.offset = None, 0
        elif key == "a":
            self.asked, self.offset = True, 0

    def _type(self, key: str) -> None:
        if key in ("enter", "escape"):
            self.typing = False
            self.text = "" if key == "escape" else self.text
        elif key == "backspace":
            self.text = self.text[:-1]
        elif len(key) == 1 and key.isprintable():
            self.text += key

    def _press_in_list(self, key: str) -> None:
        if key == "/":
            self.typing = True
        elif key == "escape":
            self.text = ""
        elif key == "t":
            self.tree = not self.tree
        elif key == "enter" and self.pids:
            self.pid, self.offset = self.pids[self.row()], 0

    def _move(self, step: int) -> None:
        if self.pid is not None:
            self.offset = max(self.offset + step, 0)
        elif self.pids:
            self.selected = self.pids[min(max(self.row() + step, 0), len(self.pids) - 1)]

    def row(self) -> int:
        """Return the position of the selected row; the first row if the selection has gone."""
        return self.pids.index(self.selected) if self.selected in self.pids else 0
