"""Find the positions of objects in containers, with one search of each container."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memrt import _memrt
from memrt._holders.inspection import is_among

Way = tuple[object, tuple[Any, ...]]  # a target object, and the path of its referring objects
BATCHED = (dict, list, tuple)  # containers that one search can examine for several objects


class Positions:
    """Positions of objects in containers.

    A container with several wanted objects is searched once for all of them. A search per object
    would take time proportional to items of the container times wanted objects.

    Parameters
    ----------
    ways : Iterable[Way]
        Targets with paths. Each object on a path is a wanted object of the next object on the path.
    """

    def __init__(self, ways: Iterable[Way]) -> None:
        self._found: dict[int, dict[int, tuple[str, Any] | None]] = {}
        wanted: dict[int, tuple[Any, dict[int, Any]]] = {}
        seen: set[int] = set()
        for target, path in ways:
            value = target
            for container in path:
                if is_among(type(container), BATCHED):
                    wanted.setdefault(id(container), (container, {}))[1][id(value)] = value
                if id(container) in seen:  # paths through one object share all objects above
                    break
                seen.add(id(container))
                value = container
        for key in wanted:  # wanted.items() crashes CPython 3.11 when out of memory
            container, values = wanted[key]
            if len(values) > 1:
                positions = _memrt.find_places(container, list(values.values()))
                self._found[key] = dict(zip(values, positions, strict=True))

    def find(self, container: Any, value: object) -> tuple[str, Any] | None:
        """Return the position of an object in a container, as _memrt.find_place() does.

        An object that the constructor did not search for costs a search of the container.
        """
        found = self._found.get(id(container))
        if found is None or id(value) not in found:
            return _memrt.find_place(container, value)
        return found[id(value)]
