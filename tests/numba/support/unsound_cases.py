"""Functions that llvmlite's refcount pruning pass breaks, and a machine for runs.

`main` gets two pointers to one object, two choices, a slot in memory and a place for an exception.
The object starts with the count 1. NRT_incref, NRT_decref and use count faults on a freed object.
No library has these functions: llvmlite's cases are functions with a right result.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import llvmlite.binding as llvm
from flow_text import with_types

MACHINE = """
@faults = global i64 0

define void @use(ptr %o) noinline {
  %count = load i64, ptr %o
  %dead = icmp sle i64 %count, 0
  br i1 %dead, label %fault, label %end
fault:
  %old = load i64, ptr @faults
  %new = add i64 %old, 1
  store i64 %new, ptr @faults
  br label %end
end:
  ret void
}

define void @add(ptr %o, i64 %n) noinline {
  call void @use(ptr %o)
  %old = load i64, ptr %o
  %new = add i64 %old, %n
  store i64 %new, ptr %o
  ret void
}

define void @NRT_incref(ptr %o) noinline {
  call void @add(ptr %o, i64 1)
  ret void
}

define void @NRT_decref(ptr %o) noinline {
  call void @add(ptr %o, i64 -1)
  ret void
}

declare i32 @__gxx_personality_v0(...)

define i64 @run(ptr %o, i1 %c, i1 %d, ptr %slot, ptr %excinfo) {
  %status = call i32 @main(ptr %o, ptr %o, i1 %c, i1 %d, ptr %slot, ptr %excinfo)
  %held = load ptr, ptr %slot
  %none = icmp eq ptr %held, null
  br i1 %none, label %end, label %release
release:
  call void @NRT_decref(ptr %held)
  call void @use(ptr %o)
  br label %end
end:
  %found = load i64, ptr @faults
  ret i64 %found
}

"""

HEAD = "define i32 @main(ptr %p, ptr %alias, i1 %c, i1 %d, ptr %slot, ptr %excinfo)"


@dataclass(frozen=True)
class Case:
    """A function, the choices that show the damage, and what the stock pass does to the function.

    `faults` is the number of uses of the freed object after the stock pass, `count` the count at
    the end. `reason` is a part of memrt's explanation, or "" if memrt removes the calls soundly.
    """

    name: str
    body: str
    choices: tuple[bool, bool]
    faults: int
    count: int
    reason: str

    @property
    def text(self) -> str:
        return with_types(f"{MACHINE}{HEAD} {self.body}\n!0 = !{{i1 true}}\n")


CASES = (
    Case(
        "alias is released in the last block",
        """{
a:
  call void @NRT_incref(ptr %p)
  br label %b
b:
  call void @NRT_decref(ptr %alias)
  call void @use(ptr %p)
  call void @NRT_decref(ptr %p)
  ret i32 0
}""",
        (False, False),
        faults=1,
        count=0,
        reason="",
    ),
    Case(
        "acquire is in a loop before the release",
        """{
a:
  br label %b
b:
  %n = phi i32 [ 0, %a ], [ %next, %b ]
  call void @NRT_incref(ptr %p)
  store ptr %p, ptr %slot
  %next = add i32 %n, 1
  %again = icmp slt i32 %next, 3
  br i1 %again, label %b, label %t
t:
  call void @NRT_decref(ptr %p)
  ret i32 0
}""",
        (False, False),
        faults=1,
        count=0,
        reason="a path from the entry reaches the same point",
    ),
    Case(
        "alias is released by invoke",
        """personality ptr @__gxx_personality_v0 {
a:
  call void @NRT_incref(ptr %p)
  invoke void @NRT_decref(ptr %alias) to label %b unwind label %l
l:
  %pad = landingpad { ptr, i32 } cleanup
  br label %b
b:
  call void @use(ptr %p)
  call void @NRT_decref(ptr %p)
  ret i32 0
}""",
        (False, False),
        faults=1,
        count=0,
        reason="may release the object",
    ),
    Case(
        "release follows the raise",
        """{
a:
  call void @NRT_incref(ptr %p)
  br i1 %c, label %b, label %t
t:
  call void @NRT_decref(ptr %p)
  ret i32 0
b:
  br i1 %d, label %r, label %s
r:
  store ptr null, ptr %excinfo, !numba_exception_output !0
  br label %handler
handler:
  call void @use(ptr %p)
  call void @NRT_decref(ptr %p)
  call void @use(ptr %p)
  ret i32 1
s:
  store ptr null, ptr %excinfo, !numba_exception_output !0
  ret i32 1
}""",
        (True, True),
        faults=1,
        count=0,
        reason="",
    ),
    Case(
        "memory owns the reference after the raise",
        """{
a:
  call void @NRT_incref(ptr %p)
  store ptr %p, ptr %slot
  br i1 %c, label %r, label %t
t:
  store ptr null, ptr %slot
  call void @NRT_decref(ptr %p)
  ret i32 0
r:
  store ptr null, ptr %excinfo, !numba_exception_output !0
  ret i32 1
}""",
        (True, False),
        faults=1,
        count=0,
        reason="the function stores references in memory",
    ),
    Case(
        "release is reached by another raise",
        """{
a:
  br i1 %c, label %h, label %r
r:
  store ptr null, ptr %excinfo, !numba_exception_output !0
  br label %t
h:
  call void @NRT_incref(ptr %p)
  br i1 %d, label %t, label %s
s:
  store ptr null, ptr %excinfo, !numba_exception_output !0
  ret i32 1
t:
  call void @NRT_decref(ptr %p)
  ret i32 0
}""",
        (False, False),
        faults=0,
        count=1,
        reason="a path from the entry reaches the same point",
    ),
)


class Object:
    """The object of a run. Pointers to it stay valid after its count is 0."""

    def __init__(self) -> None:
        self.count = ctypes.c_int64(1)
        self.slot = ctypes.c_void_p()
        self.excinfo = ctypes.c_void_p()


def outcome(text: str, choices: tuple[bool, bool]) -> tuple[int, int]:
    """Compile and run a module. Return the number of faults, and the count at the end."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol("__gxx_personality_v0", ctypes.cast(ctypes.pythonapi.Py_Initialize,
                                                        ctypes.c_void_p).value)  # fmt: skip
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine) as engine:
        engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] + [ctypes.c_bool] * 2
                                     + [ctypes.c_void_p] * 2)  # fmt: skip
        run = prototype(engine.get_function_address("run"))
        made = Object()
        faults = run(ctypes.addressof(made.count), *choices, ctypes.addressof(made.slot),
                     ctypes.addressof(made.excinfo))  # fmt: skip
    return faults, made.count.value
