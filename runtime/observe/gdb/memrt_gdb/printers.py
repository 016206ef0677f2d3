"""Pretty-printers of MemInfos and policies."""

import gdb.printing

from .counters import Sums
from .live_set import listed_at
from .meminfo import describe
from .policies import base_of, scope_of
from .program import text_in


class MemInfoPrinter:
    """Print a MemInfo: a description, then its words."""

    def __init__(self, value):
        self._value = value

    def to_string(self):
        if self._value.address is None:
            return "copy of a MemInfo"
        buffer = listed_at(int(self._value.address))
        return describe(buffer) if buffer.is_sound else "no live MemInfo"

    def children(self):
        for name in ("refct", "dtor", "dtor_info", "data", "size"):
            yield name, self._value[name]


class PolicyPrinter:
    """Print a policy: its name and scope, then its figures and bytes in use."""

    def __init__(self, value):
        self._value = value

    def to_string(self):
        policy, base = self._value, base_of(self._value)
        scope = scope_of(policy)
        inside = f" in scope '{scope}'" if scope else ""
        return f"policy '{text_in(base['name'])}'{inside}"

    def children(self):
        sums = Sums().add_account(self._value["account"])
        yield "index", self._value["account"]["index"]
        yield "alignment", self._value["alignment"]
        yield "refs", self._value["refs"]
        yield "live_bytes", sums.live
        yield "live_blocks", sums.made - sums.freed


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("memrt")
    collection.add_printer("meminfo", "^memrt_meminfo(_t)?$", MemInfoPrinter)
    collection.add_printer("policy", "^memrt_policy(_t)?$", PolicyPrinter)
    return collection
