"""Write tables of figures as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def html_table(
    caption: str, rows: Iterable[Sequence[str]], header: Sequence[str] = (), *, align: str = "left"
) -> str:
    """Return an HTML table. The first cell of each row is the name of the row.

    Parameters
    ----------
    align : {'left', 'right'}
        Alignment of all cells except the names.
    """
    import html  # a program without notebooks does not need the table of entities

    def line(cells: Sequence[str]) -> str:
        name, *values = map(html.escape, cells)
        columns = "".join(f'<td style="text-align:{align}">{value}</td>' for value in values)
        return f'<tr><th style="text-align:left">{name}</th>{columns}</tr>'

    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(map(line, rows))
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<table><caption>{html.escape(caption)}</caption>{top}<tbody>{body}</tbody></table>"
