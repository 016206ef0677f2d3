"""Record a cell, and show the report page of the recording in a frame."""

from __future__ import annotations

import html

from memrt._profile import page
from memrt._profile.recorder import Recorder

_FRAME = (
    '<iframe title="memrt: report of {}" srcdoc="{}" style="width:100%;height:640px;border:0" '
    'sandbox="allow-scripts"></iframe>'
)


class ReportFrame:
    """Recording of a cell, from the creation to stop(), then the page of the recording.

    Parameters
    ----------
    cell : str
        Name of the cell, the title of the page.

    Raises
    ------
    MissingPackageError
        A package of the page is not installed.
    """

    def __init__(self, cell: str) -> None:
        page.expect_packages()
        self._cell, self._text = cell, ""
        self._recorder = Recorder({"Cell": cell}, tracked=True)
        self._recorder.start()

    def stop(self) -> None:
        """End the recording."""
        self._recorder.stop()

    def render(self) -> None:
        """Render the page, after stop(). The allocations do not belong to the cell."""
        document = {**self._recorder.finish("end of the cell"), "program": [self._cell]}
        self._text = page.render([document]).decode("utf-8")

    def __repr__(self) -> str:
        return f"memrt: report of {self._cell}, shown in notebooks"

    def _repr_html_(self) -> str:
        return _FRAME.format(html.escape(self._cell), html.escape(self._text))
