"""Walk along paths from an object over referring objects to a variable or module."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from memrt._holders.inspection import is_a, is_among
from memrt._holders.positions import BATCHED, Positions, Way
from memrt._holders.roots import Root, module_root, root_at
from memrt._holders.steps import Step, step_to

Walk = tuple[list[Step], Root | None, object]  # steps, root, last object


class Walker:
    """Walker along the paths of a set of objects.

    The objects and paths must outlive the walker, because caches of the walker use ``id()``.

    Parameters
    ----------
    ways : Iterable[Way]
        Objects, each with a path of referring objects.
    """

    def __init__(self, ways: Iterable[Way]) -> None:
        self._positions = Positions(ways)
        self._tails: dict[int, Walk] = {}  # by id(): walk from a container to the root

    def walk(self, target: object, path: tuple[Any, ...], steps: int) -> Walk:
        """Return the walk along a path, as _walk_path() does.

        Objects in one container share the walk above the container. Only the first step differs
        between the objects. A first step of two objects, or to a module, is not shared.
        """
        if len(path) < 2 or not is_among(type(path[0]), BATCHED):
            return _walk_path(target, path, steps, self._positions)
        first = step_to(target, path[0], path[1], self._positions)
        if first.used != 1 or first.kind == "global":
            return _walk_path(target, path, steps, self._positions)
        tail = self._tails.get(id(path[0]))
        if tail is None:
            tail = _walk_path(path[0], path[1:], steps - 1, self._positions)
            self._tails[id(path[0])] = tail
        taken, root, last = tail
        return [first, *taken], root, last


def _walk_path(target: object, path: tuple[Any, ...], steps: int, positions: Positions) -> Walk:
    """Return the steps along a path of referring objects, the root, and the last object.

    The root is None if the path ends without a variable, a function or a module. `steps` is the
    length of the whole path: more than ``len(path)`` if the path was cut before the last object.
    """
    taken: list[Step] = []
    value, at = target, 0
    while at < len(path):
        root = root_at(value, path, at)
        if root is not None:
            return taken, root, path[at]
        if is_a(path[at], types.ModuleType):
            return taken, module_root(path[at]), path[at]
        if steps > len(path) and at == len(path) - 1:
            taken.append(Step(" ... "))  # stands for the objects that were cut
            return taken, None, path[at]
        above = path[at + 1] if at + 1 < len(path) else None
        step = step_to(value, path[at], above, positions)
        taken.append(step)
        at += step.used
        value = path[at - 1]
        if step.kind == "global":
            return taken, module_root(value), value
    return taken, None, value
