"""Starts and ends of blocks with equal states, for all references of a function."""

from __future__ import annotations

from memrt.numba.refprune.flow import Flow


class Classes:
    """Classes of points with equal states.

    The start of block `i` is point `2 * i`, the end is point `2 * i + 1`. The end of a block and
    the starts of its successors share a class, as do the start and the end of an empty block.
    """

    def __init__(self, flow: Flow) -> None:
        self._parent = list(range(2 * len(flow.blocks)))
        self.predecessors: list[list[int]] = [[] for _ in flow.blocks]
        self.busy = [index for index, block in enumerate(flow.blocks) if block.all_events()]
        for index, block in enumerate(flow.blocks):
            for successor in block.successors:
                self._join(2 * index + 1, 2 * successor)
                self.predecessors[successor].append(index)
            if not block.all_events():
                self._join(2 * index, 2 * index + 1)
        self.start = [self._root(2 * index) for index in range(len(flow.blocks))]
        self.end = [self._root(2 * index + 1) for index in range(len(flow.blocks))]

    def _root(self, point: int) -> int:
        parent = self._parent
        while parent[point] != point:
            parent[point] = point = parent[parent[point]]
        return point

    def _join(self, point: int, other: int) -> None:
        self._parent[self._root(point)] = self._root(other)

    def blocks_reaching(self, targets: set[int]) -> set[int]:
        """Return the targets, and the blocks with a path to a target."""
        found = set(targets)
        waiting = list(targets)
        while waiting:
            for predecessor in self.predecessors[waiting.pop()]:
                if predecessor not in found:
                    found.add(predecessor)
                    waiting.append(predecessor)
        return found
