"""Measure memory in notebooks: the magics ``%memrt`` and ``%%memrt`` of IPython and Jupyter.

Each run of a cell or statement has a new measure. The measure ends with the run, even after an
exception.
"""

from __future__ import annotations

from typing import Any, NoReturn

from memrt._notebook.report_frame import ReportFrame
from memrt._notebook.tables import CellMemory, SessionMemory
from memrt._policy.enabling import disable, enable, enabled
from memrt._support.extras import MissingPackageError
from memrt._tracking.live import tracking
from memrt._tracking.measure import Measures
from memrt._tracking.sites import Place
from memrt._tracking.user_code import cell_of, name_cell

_USAGE = "%memrt [--on | --off | STATEMENT] and %%memrt [--report] are the forms of the magic, got "


class _Magics:
    """State of the magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._tracking: tracking | None = None
        self._enabled = False

    def run(self, line: str, cell: str | None = None) -> None:
        """Show the memory of the session, of a statement or of a cell.

        ``%memrt`` shows the live bytes and the peak of the session. ``%memrt --on`` puts NumPy on
        memrt with tracking for the following cells, so that ``%memrt`` also lists source lines;
        ``%memrt --off`` ends this. ``%memrt STATEMENT`` and a cell that begins with ``%%memrt`` run
        with NumPy on memrt, and show the peak, and the memory left behind by source line.
        ``%%memrt --report`` also shows the report page.
        """
        from IPython.display import display

        words = line.strip()
        if cell is not None and words in ("", "--report"):
            self._measure(_with_magic_line(cell, words), with_page=bool(words))
        elif cell is None and not words.startswith("--"):
            if words:
                self._measure(line)
            else:
                display(SessionMemory(_name))  # type: ignore[no-untyped-call]
        elif cell is None and words in ("--on", "--off"):
            self._switch_on() if words == "--on" else self._switch_off()
        else:
            _refuse(_USAGE + repr(words))

    def _switch_on(self) -> None:
        if self._tracking is None:
            self._tracking = tracking()
            self._tracking.__enter__()
        self._enabled |= enabled() is None
        enable()

    def _switch_off(self) -> None:
        if self._tracking is not None:
            self._tracking.__exit__()
            self._tracking = None
        if self._enabled:
            disable()
        self._enabled = False

    def _measure(self, code: str, *, with_page: bool = False) -> None:
        """Run code, and show its memory, also after an exception in the code."""
        from IPython.display import display

        self._name_code(code)
        measure = Measures("cells").new("cell", tracked=True)
        measure.enter()
        try:
            frame = _report_frame(self._cell()) if with_page else None
            self._shell.run_cell(code)
        finally:
            measure.leave()
        if frame is not None:
            frame.stop()
        display(CellMemory(measure, _name))  # type: ignore[no-untyped-call]
        if frame is not None:
            frame.render()
            display(frame)  # type: ignore[no-untyped-call]

    def _cell(self) -> str:
        """Return the name of the cell that runs."""
        return f"In[{max(len(self._shell.user_ns.get('In', ())) - 1, 0)}]"

    def _name_code(self, code: str) -> None:
        """Name the cell of code that a magic runs, by the file name that IPython will give."""
        compiler, cell = self._shell.compile, self._shell.transform_cell(code)
        file = compiler.get_code_name(code, cell, self._shell.execution_count)
        name_cell(file, self._cell())


def _name(place: Place) -> str:
    """Return the name of a source line: in cells as in tracebacks, ``In[2], line 5``."""
    cell = cell_of(place.file or "")
    if cell is None:
        return str(place)
    function = "" if place.function in (None, "<module>") else f"{place.function} in "
    return f"{function}{cell}, line {place.line}"


def _with_magic_line(code: str, words: str) -> str:
    """Return the code of a cell behind its magic as a comment, so that line numbers are the cell's.

    The comment has the indentation of the code, because IPython removes the indentation of the
    first line. Code that begins with a magic of cells stays as it is.
    """
    start = code.lstrip()
    if start.startswith("%%"):
        return code
    indentation = code[: len(code) - len(start)].rpartition("\n")[2]
    return f"{indentation}# %%memrt {words}".rstrip() + f"\n{code}"


def _report_frame(cell: str) -> ReportFrame:
    try:
        return ReportFrame(cell)
    except MissingPackageError as error:
        _refuse(str(error))


def _refuse(text: str) -> NoReturn:
    from IPython.core.error import UsageError

    raise UsageError(text)


def load_ipython_extension(shell: Any) -> None:
    """Register the magics ``%memrt`` and ``%%memrt``; called by ``%load_ext memrt``."""
    from IPython.core.magic import no_var_expand

    magics = _Magics(shell)

    def memrt(line: str, cell: str | None = None) -> None:
        magics.run(line, cell)

    memrt.__doc__ = _Magics.run.__doc__
    shell.register_magic_function(no_var_expand(memrt), "line_cell", "memrt")
