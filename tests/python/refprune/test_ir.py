"""Reading LLVM IR text for the refcount pruning engine, and deleting lines of it."""

import pytest
from memrt.numba.refprune import ir
from memrt.numba.refprune.engine import Plan, plan
from memrt.numba.refprune.flow import Kind

FUNCTION = """\
define i32 @f(ptr %p, ptr %q, ptr %excinfo) {
entry:
  call void @NRT_incref(ptr %p)
  %n = load i64, ptr %p, align 8
  switch i64 %n, label %a [
    i64 0, label %b
    i64 1, label %"c d"
  ]

a:                                                ; preds = %entry
  tail call void @NRT_decref(ptr nonnull %p) #1, !dbg !3
  br label %end

b:                                                ; preds = %entry
  store ptr null, ptr %excinfo, align 8, !numba_exception_output !0
  ret i32 1

"c d":                                            ; preds = %entry
  unreachable

end:                                              ; preds = %a
  %r = phi i32 [ 0, %a ]
  ret i32 %r
}"""


def body(*lines, strict=False):
    """Return the body of a function with a pair of refops on %p around the lines."""
    before = "  call void @NRT_incref(ptr %p)"
    after = "  call void @NRT_decref(ptr %p)"
    text = "\n".join(("define void @f(ptr %p) {", before, *lines, after, "  ret void", "}"))
    made = ir.read(text, strict)
    assert made is not None
    return made


def kinds(*lines, strict=False):
    return [event.kind for event in body(*lines, strict=strict).flow.blocks[0].events[1:-1]]


def test_blocks_and_edges_are_read():
    made = ir.read(FUNCTION, strict=False)
    blocks = made.flow.blocks
    assert [block.name for block in blocks] == ["entry", "a", "b", "c d", "end"]
    assert [block.successors for block in blocks] == [(1, 2, 3), (4,), (), (), ()]
    assert [block.returns for block in blocks] == [False, False, True, False, True]
    assert blocks[3].pinned
    assert not made.flow.stores


def test_edges_of_a_later_switch_are_read():
    switch = "  switch i64 %n, label %b [\n    i64 0, label %end\n  ]"
    made = ir.read(FUNCTION.replace("  br label %end", switch), strict=False)
    assert made.flow.blocks[1].successors == (2, 4)
    assert made.name == "f"
    assert [each.group() for each in ir.functions(f"{FUNCTION}\n")] == [FUNCTION]


def test_refops_and_raises_are_read():
    made = ir.read(FUNCTION, strict=False)
    events = [[event.kind for event in block.events] for block in made.flow.blocks]
    assert events == [[Kind.ACQUIRE], [Kind.RELEASE], [Kind.RAISE], [], []]
    assert made.flow.references() == ["%p"]


def test_edited_text_lacks_the_removed_lines():
    made = ir.read(FUNCTION, strict=False)
    text, moved = ir.edited(made, plan(made.flow))
    assert "NRT_" not in text
    assert moved == 0
    assert len(text.split("\n")) == len(FUNCTION.split("\n")) - 2


def test_releases_of_a_sunk_block_move_before_the_terminator():
    made = body("  call void @NRT_decref(ptr %q)", "  call void @use()")
    text, moved = ir.edited(made, Plan({1, 4}, {0}))
    assert moved == 1
    assert text.split("\n")[1:4] == [
        "  call void @use()", "  call void @NRT_decref(ptr %q)", "  ret void"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "  call void %NRT_decref(ptr %q)",
        "  call void @NRT_MemInfo_release(ptr %q)",
        "  %o = call ptr @NRT_meminfo_as_pyobject(ptr %q)",
        "  call void bitcast (void (i64*)* @NRT_decref to void (i8*)*)(i8* %q)",
    ],
)
def test_call_that_consumes_a_reference_is_a_fence(line):
    assert Kind.FENCE in kinds(line)


def test_invoke_of_a_release_is_a_fence_of_the_terminator():
    invoke = "  invoke void @NRT_decref(ptr %p) to label %b unwind label %b"
    made = ir.read(FUNCTION.replace("  br label %end", invoke), strict=False)
    assert [event.kind for event in made.flow.blocks[1].closing] == [Kind.FENCE]


def test_calls_are_fences_in_strict_mode():
    call = "  call void @g(ptr %p)"
    assert kinds(call) == []
    assert kinds(call, strict=True) == [Kind.FENCE]
    assert kinds("  call void @llvm.assume(i1 true)", strict=True) == []
    assert kinds("  call void @NRT_incref(ptr %q)", strict=True) == []


def test_access_after_a_release_is_an_event():
    release = "  call void @NRT_decref(ptr %q)"
    access = "  %x = load i8, ptr %p, align 1"
    assert kinds(access) == []
    assert kinds(release, access) == [Kind.RELEASE, Kind.ACCESS]
    assert kinds(release, "  %x = add i32 1, 2") == [Kind.RELEASE]


def test_definition_of_a_reference_is_an_event():
    assert kinds("  %p = load ptr, ptr %q, align 8") == [Kind.DEFINE]
    assert kinds("  %x = load ptr, ptr %q, align 8") == []


@pytest.mark.parametrize(
    ("line", "stores"),
    [
        ("  store ptr %x, ptr %slot, align 8", True),
        ("  store { ptr, i64 } %x, ptr %slot, align 8", True),
        ("  store ptr %x, ptr %retptr, align 8", False),
        ("  store ptr null, ptr %slot, align 8", False),
        ("  store i64 %x, ptr %slot, align 8", False),
    ],
)
def test_stores_of_pointers_are_noticed(line, stores):
    assert body(line).flow.stores is stores


@pytest.mark.parametrize(
    "line",
    [
        "  store ptr null, ptr %other, align 8, !numba_exception_output !0",
        "  store ptr null, ptr %excinfo, align 8",
    ],
)
def test_raise_needs_the_place_and_the_metadata(line):
    assert Kind.RAISE not in kinds(line)


def test_last_releases_of_a_block_do_not_move():
    made = ir.read(FUNCTION, strict=False)
    assert ir.edited(made, Plan(set(), {0, 1})) == (FUNCTION, 0)


def test_pinned_block_keeps_its_releases():
    made = body("  call void @NRT_decref(ptr %q)", "  musttail call void @g(ptr %p)")
    assert ir.edited(made, Plan({1, 4}, {0}))[1] == 0


def test_second_argument_of_a_refop_is_ignored():
    text = FUNCTION.replace("incref(ptr %p)", "incref(ptr %p, ptr @trace)")
    assert ir.read(text, strict=False).flow.references() == ["%p"]


def test_typed_pointers_of_old_llvm_are_read():
    made = ir.read(FUNCTION.replace("ptr ", "i8* "), strict=False)
    assert len(plan(made.flow).removed) == 2


def test_calls_on_null_are_listed():
    text = FUNCTION.replace("  %n =", "  call void @NRT_decref(ptr null)\n  %n =")
    made = ir.read(text, strict=False)
    assert made.nulls == [3]
    assert "null)" not in ir.edited(made, Plan())[0]


def test_function_without_pairs_is_not_read():
    assert ir.read(FUNCTION.replace("NRT_decref", "other"), strict=False) is None


def test_exception_pads_of_windows_are_not_supported():
    made = ir.read(FUNCTION.replace("  unreachable", "  cleanupret from %p unwind to caller"),
                   strict=False)  # fmt: skip
    assert not made.is_supported


def test_musttail_call_pins_its_block():
    call = "  musttail call void @g(ptr %p)\n  ret i32 0"
    made = ir.read(FUNCTION.replace("  br label %end", call), strict=False)
    assert [block.pinned for block in made.flow.blocks] == [False, True, False, True, False]
