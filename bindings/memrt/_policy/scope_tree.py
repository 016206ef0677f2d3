"""Tree of all scopes, and the paths of scopes as text."""

from __future__ import annotations

from collections.abc import Iterator

from memrt import _memrt
from memrt._policy.scope import Scope, figures_text
from memrt._stats.snapshot import main_figures
from memrt._support.html_table import html_table
from memrt._support.public import public


@public("memrt.types")
class ScopeTree:
    """Tree of the scopes that exist at construction, for iteration and lookup by path.

    Iteration yields all scopes, parents before children. Scopes opened later are missing. The
    figures of each scope are current at each reading.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("outer"), memrt.scope("inner"):
    ...     table = memrt.zeros(1000)
    >>> tree = memrt.scopes()
    >>> tree["outer/inner"].live, [scope.name for scope in tree.children(tree["outer"])]
    (8000, ['inner'])
    """

    __slots__ = ("_children", "_scopes")

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self._children: dict[int, list[Scope]] = {}
        paths: dict[int, tuple[str, ...]] = {0: ()}
        for capsule in _memrt.scopes():  # parents before children
            number, name, parent = _memrt.scope_info(capsule)
            paths[number] = (*paths[parent], name)
            found = Scope(capsule, paths[number])
            self._scopes.append(found)
            self._children.setdefault(parent, []).append(found)

    def children(self, scope: Scope | None = None) -> list[Scope]:
        """Return the scopes directly inside a scope.

        Parameters
        ----------
        scope : Scope, optional
            Scope of the tree. None: return the outermost scopes.

        Returns
        -------
        list of Scope
            Scopes nested one level deep.
        """
        return list(self._children.get(0 if scope is None else scope._id, ()))

    def __iter__(self) -> Iterator[Scope]:
        return iter(self._scopes)

    def __len__(self) -> int:
        return len(self._scopes)

    def __getitem__(self, path: str | tuple[str, ...]) -> Scope:
        """Return the scope of a path.

        Parameters
        ----------
        path : str or tuple of str
            Names joined by slashes, or a tuple of names. A name with a slash needs the tuple.

        Returns
        -------
        Scope
            Scope of the path.

        Raises
        ------
        KeyError
            The tree has no such scope.
        """
        names = tuple(path.split("/")) if isinstance(path, str) else path
        for found in self._scopes:
            if found.path == names:
                return found
        raise KeyError(path)

    def _lines(self, scope: Scope | None, indent: str) -> Iterator[str]:
        for child in self.children(scope):
            yield f"{indent}{child.name}: {figures_text(child.stats())}"
            yield from self._lines(child, indent + "  ")

    def __repr__(self) -> str:
        return "\n".join(["memrt.scopes:", *(self._lines(None, "  "))])

    def _repr_html_(self) -> str:
        """Return the scopes with their main figures as an HTML table, for notebooks."""
        header, rows = ["scope"], []
        for scope in self._scopes:
            figures = main_figures(scope.stats())
            header = ["scope", *figures]
            rows.append([scope_name(scope.path), *figures.values()])
        return html_table("memrt.scopes", rows, header, align="right")


@public("memrt")
def scopes() -> ScopeTree:
    """Return the tree of scopes.

    Returns
    -------
    memrt.types.ScopeTree
        Tree of the scopes that exist now.

    Notes
    -----
    A scope stays in the tree with its figures after the scope was left. At the limit of 4096
    scopes, the oldest scopes without references and live blocks are removed. The figures of a
    removed scope stay in the figures of the enclosing scope.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load"):
    ...     table = memrt.zeros(1000)
    >>> memrt.scopes()["load"].live
    8000
    """
    return ScopeTree()


def scope_name(path: tuple[str, ...]) -> str:
    """Join the names of a path with slashes. A slash or backslash in a name gets a backslash."""
    return "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in path)


def scope_paths() -> dict[int, str]:
    """Return the path of each scope by the scope's number, with '' for number 0: outside of scopes.

    Slashes join the names. Slashes in names are not escaped, unlike in scope_name().
    """
    paths = {0: ""}
    for capsule in _memrt.scopes():  # parents before children
        number, name, parent = _memrt.scope_info(capsule)
        paths[number] = f"{paths[parent]}/{name}" if parent else name
    return paths
