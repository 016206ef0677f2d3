"""Findings: programs with planted problems, healthy programs, and the limits of each rule."""

import importlib.util
import itertools
import mmap
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import memrt
import numpy as np
import pytest
from gil import needs_gil
from memrt._leaks.advice import fix_for
from memrt._leaks.survey import _Subject, _Use
from memrt._profile import moment as moments
from memrt._profile.findings import contents, held, usage
from memrt._profile.findings.contents import Candidates, Content, sample_contents
from memrt._profile.findings.finding import Evidence, Finding
from memrt._profile.findings.held import find_growth, find_lost
from memrt._profile.findings.statements import statement_at
from memrt._profile.findings.untouched import find_untouched, unused_bytes
from memrt._profile.findings.verdict import find_all
from memrt._profile.moment import Moment
from memrt._profile.recording import RecordingError, dumps, loads
from memrt._tracking import sites
from memrt._tracking.user_code import LibraryCall

HERE = Path(__file__).parent
MIB = 1024 * 1024

pytestmark = [needs_gil, pytest.mark.slow]

# Programs in the folder `planted` are synthetic. Programs in `reported` follow public issues, and
# were written after the rules. Each program has a comment `# planted` at the expected line.
PLANTED = {
    "cached_errors": ("growth", "kept by a traceback"),
    "cached_method": ("growth", "(a cached result)"),
    "cached_method_of_object": ("growth", "(a cached result)"),
    "callbacks": ("growth", "(closure variable `baseline`)"),
    "kept_errors": ("growth", "kept by a traceback"),
    "long_formula": ("temporaries", None),
    "lost_by_extension": ("lost", "no Python object"),
    "new_array_each_step": ("repeated", None),
    "over_allocated": ("untouched", "table"),
    "open_figures": ("growth", "pages[...]"),
    "pairwise_differences": ("temporaries", None),
    "pixels_as_float": ("wide", "picture"),
    "slices_of_sounds": ("retained", "beginnings[...]"),
    "tables_per_worker": ("duplicates", "workers[...].table"),
    "thumbnails_of_images": ("retained", "thumbnails[...]"),
    "unbounded_cache": ("growth", "RESULTS[...]"),
    "views_in_index": ("retained", "index.tiles[...]"),
    "wide_image": ("wide", "images"),
}
PACKAGES = {
    "image_pipeline": "PIL",
    "open_figures": "matplotlib",
    "pixels_as_float": "PIL",
    "saved_figures": "matplotlib",
    "thumbnails_of_images": "PIL",
}


def skip_without_package(script: Path) -> None:
    """Skip a test if the package of a program is not installed."""
    package = PACKAGES.get(script.stem)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    if script.stem == "saved_figures":  # older versions keep each line twice
        pytest.importorskip("matplotlib", "3.11")


def findings_of(script: Path, folder: Path) -> list[dict[str, object]]:
    """Run a program and return the findings of its recording."""
    file = folder / "recording"
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "--record", file, script]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (document,) = loads(file.read_bytes())
    assert [note for note in document["notes"] if "incomplete" in note] == []
    findings: list[dict[str, object]] = document["findings"]
    return findings


def programs(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (HERE / folder).glob("*.py"))


def test_each_planted_program_has_an_expectation():
    assert sorted(path.stem for path in programs("planted", "reported")) == sorted(PLANTED)


@pytest.mark.parametrize("script", programs("planted", "reported"), ids=lambda path: path.stem)
def test_first_finding_names_the_planted_line_and_holder(script, tmp_path):
    skip_without_package(script)
    name = script.stem
    lines = script.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith("# planted"))
    first = findings_of(script, tmp_path)[0]
    rule, holder = PLANTED[name]
    assert first["rule"] == rule
    assert str(first["place"]).endswith(f"{name}.py:{line}")
    assert f"{name}.py:{line}" in str(first["text"])
    assert first["fix"]
    if holder is None:
        assert first["holder"] is None
    else:
        assert holder in str(first["holder"])


@pytest.mark.parametrize("script", programs("healthy"), ids=lambda path: path.stem)
def test_healthy_program_has_no_finding(script, tmp_path):
    skip_without_package(script)
    assert findings_of(script, tmp_path) == []


def test_program_that_failed_may_have_used_its_arrays_later(tmp_path):
    script = tmp_path / "fail.py"
    script.write_text("import sys, numpy as np\ntable = np.empty((1_000_000, 8))\nsys.exit(3)\n")
    file = tmp_path / "recording"
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "--record", file, script]
    assert subprocess.run(command, check=False, timeout=120).returncode == 3
    assert loads(file.read_bytes())[0]["findings"] == []


# --- The rules, at their limits. ---


def evidence(**fields):
    return Evidence(**{"peak": 10 * MIB, "live": 10 * MIB, "last": 1000, **fields})


def rules(found):
    return [each.rule for each in found]


def test_at_most_five_findings_with_most_bytes_first(monkeypatch):
    found = [Finding("wide", size, "", "") for size in (1, 5, 3, 2, 6, 4)]
    found.append(Finding("growth", 4, "", "", is_rising=True))
    monkeypatch.setattr("memrt._profile.findings.verdict._RULES", (lambda _: found,))
    chosen = [(each.rule, each.bytes) for each in find_all(evidence())]
    assert chosen == [("growth", 4), ("wide", 6), ("wide", 5), ("wide", 4), ("wide", 3)]


def content(address, digest=b"x", narrow="", nbytes=MIB):
    return Content(address, nbytes, 0, digest, narrow)


def test_duplicates_are_of_one_size_and_not_constant():
    same = [content(1), content(2), content(3)]
    assert rules(find_all(evidence(at_end=same))) == ["duplicates"]
    assert find_all(evidence(at_end=same))[0].bytes == 2 * MIB
    assert find_all(evidence(at_end=[content(1), content(2, nbytes=MIB + 8)])) == []
    assert find_all(evidence(at_end=[content(1), content(2, b"y")])) == []
    assert find_all(evidence(at_end=[content(1, b""), content(2, b"")])) == []


def test_duplicates_at_peak_and_end_are_one_finding():
    same = [content(1), content(2)]
    (found,) = find_all(evidence(at_end=same, at_peak=same))
    assert "at the end" in found.text


def test_small_part_of_the_peak_is_no_finding():
    same = [content(1), content(2)]
    assert find_all(evidence(at_end=same, peak=11 * MIB)) == []


@pytest.mark.parametrize(("narrow", "part"), [("float32", 0.5), ("int16", 0.75)])
def test_wide_arrays_state_the_saved_bytes(narrow, part):
    wide = [content(1, b"a", narrow, 8 * MIB)]
    (found,) = find_all(evidence(at_end=wide, at_peak=wide))
    assert (found.rule, found.bytes) == ("wide", part * 8 * MIB)
    assert narrow in found.fix


@pytest.mark.parametrize(
    ("part", "owner"), [("cached", "memrt keeps"), ("malloc_free", "malloc keeps")]
)
def test_fragmentation_counts_free_memory_above_memory_in_use(part, owner):
    memory = {"arrays": 10 * MIB, "malloc_used": 90 * MIB, part: 100 * MIB}
    (found,) = find_all(evidence(memory=memory, cached=100 * MIB))
    assert (found.rule, found.bytes) == ("fragmentation", 100 * MIB)
    assert owner in found.text
    assert find_all(evidence(memory={**memory, part: 99 * MIB}, cached=100 * MIB)) == []


def test_short_time_of_cached_memory_is_no_fragmentation():
    assert find_all(evidence(memory={"cached": 100 * MIB}, cached=MIB)) == []


LIBRARY = f"{sysconfig.get_path('purelib')}/library/core.py"


def call(function, file=LIBRARY):
    return memrt.types.Frame(function, file, 1, 0, False)


@pytest.fixture
def place(monkeypatch, tmp_path):
    """Return a function that writes a statement as the source of every site.

    Site 1 has the statement only, site 2 and so on the given calls of a library below.
    """

    def write(text, *inner):
        file = tmp_path / f"source{len(list(tmp_path.iterdir()))}.py"
        file.write_text(text)
        sites = {
            number: memrt.types.Site(number, (*map(call, names), call("f", str(file))))
            for number, names in enumerate(((), *inner), 1)
        }
        monkeypatch.setattr(usage, "site_of", sites.get)

    return write


@pytest.mark.parametrize(
    ("statement", "buffers", "expected"),
    [
        ("y = a * b + c", 2, True),
        ("y = a * b + c", 3, True),  # also the old value of y
        ("y = a * b + c", 4, False),  # more than the operations explain
        ("y = a * b", 2, False),
        ("x, y = f(a), f(b)", 2, False),
        ("kept = [f(a), f(b)]", 2, False),
        ("kept.append(f(a))", 2, False),
        ("kept = [a * 2 + b for b in c]", 2, False),
        ("y = (a * b +", 2, False),  # no valid source
    ],
)
def test_temporaries_are_more_than_the_results_of_a_statement(place, statement, buffers, expected):
    place(statement)
    moment = Moment(0.0, {}, {}, {1: (buffers, 8 * MIB)})
    found = list(usage.find_temporaries(evidence(moment=moment)))
    assert bool(found) == expected
    assert list(usage.find_temporaries(evidence(moment=moment, is_sampled=True))) == []


@pytest.mark.parametrize(
    ("statement", "inner", "buffers", "expected"),
    [
        ("y = a * b + c", [["A.__mul__"], ["A.__add__"]], [0, 1, 1], True),
        ("y = a * b + c", [["A.__rmul__", "wrap"], ["A.__add__", "wrap"]], [0, 1, 1], True),
        ("y = a + b + c", [["A.__add__"]], [0, 2], True),
        ("y = a * b + c", [["copy", "A.__mul__"]], [0, 3], False),  # copies inside one operator
        ("y = a * b + c", [["A.__sub__"], ["A.__sub__"]], [0, 1, 1], False),  # one unknown call
        ("y = m.fit(a[:-1])", [["check", "A.fit"], ["copy", "A.fit"]], [0, 2, 1], False),
        ("y = concat(a).mean()", [["concat"], ["A.mean"]], [0, 1, 1], False),  # no operator
        ("y = f(g(a), h(a))", [], [3], True),  # functions of C
        ("y = m.fit(np.ones(3))", [["A.fit"]], [1, 1], False),  # the input is no expression
        ("y = (a * 2).mean()", [["where", "A.mean"]], [1, 3], True),  # a result beside a call
    ],
)
def test_temporaries_of_a_library_count_once_for_each_operation(
    place, statement, inner, buffers, expected
):
    place(statement, *inner)
    large = {site: (n, n * 4 * MIB) for site, n in enumerate(buffers, 1) if n}
    found = list(usage.find_temporaries(evidence(moment=Moment(0.0, {}, {}, large))))
    assert bool(found) == expected


def test_temporaries_inside_packages_are_no_finding(monkeypatch, tmp_path):
    file = tmp_path / "site-packages" / "core.py"
    file.parent.mkdir()
    file.write_text("y = a * b + c")
    site = memrt.types.Site(1, (call("f", str(file)),))
    monkeypatch.setattr(usage, "site_of", lambda number: site)
    moment = Moment(0.0, {}, {}, {1: (2, 8 * MIB)})
    assert list(usage.find_temporaries(evidence(moment=moment))) == []


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([(1, 7), (2, 7), (3, 7)], [1, 2]),  # the newest may be of the running call
        ([(1, 8), (2, 0), (3, 8)], [1, 2, 3]),  # the call of site 8 has ended
        ([(1, 7), (2, 8)], [2]),
        ([(1, 9), (2, 9), (3, 8)], [3]),  # site 9 has no call of user code
    ],
)
def test_contents_inside_running_calls_are_left_out(monkeypatch, rows, kept):
    sites = {9: memrt.types.Site(9, (call("fit"),))}
    monkeypatch.setattr(moments, "site_of", sites.get)
    calls = {7: LibraryCall("a.py", 3, "lib.py"), 8: LibraryCall("a.py", 4, "lib.py")}
    monkeypatch.setattr(moments, "_library_call_of", calls.get)
    monkeypatch.setattr(moments, "_is_of_user_code", moments._is_of_user_code.__wrapped__)
    listed = [buffer(number, site) for number, site in rows]
    small = buffer(4, 8)._replace(nbytes=1000)
    found = moments.rows_outside_calls([*listed, small], {calls[7]})
    assert [row[0] for row in found] == kept


@pytest.mark.parametrize(
    ("statement", "count", "nbytes", "expected"),
    [
        ("x = x * 2", 1000, 1000 * MIB, True),
        ("x = x * 2", 999, 999 * MIB, False),
        ("x = x * 2", 1000, 1000 * MIB + 1, False),  # not of one size
        ("x = f(x)", 1000, 1000 * MIB, False),  # no operator
    ],
)
def test_repeated_allocations_have_one_size_and_an_operator(
    place, statement, count, nbytes, expected
):
    place(statement)
    found = list(usage.find_repeated(evidence(total=[(1, count, nbytes), (0, 5, 5 * MIB)])))
    assert bool(found) == expected


def test_statement_over_lines_has_one_first_line(tmp_path):
    file = tmp_path / "source.py"
    file.write_text("def f(a):\n    return (\n        a * 2\n        + a\n    )\n")
    assert statement_at(str(file), 4).line == 2
    assert statement_at(str(file), 9) is None
    assert statement_at("<string>", 1) is None
    os.mkfifo(tmp_path / "pipe.py")
    assert statement_at(str(tmp_path / "pipe.py"), 1) is None


def buffer(number, site=0, age=0):
    return memrt.types.LiveBuffer(
        number, MIB, 1, None, age, 0, "default", "block", number, None, site, 1.0, False
    )


def group(ages, numbers, sites=(0,)):
    """Return a group of buffers, with the numbers of sites in turn."""
    pairs = zip(ages, numbers, strict=True)
    turns = zip(pairs, itertools.cycle(sites), strict=False)
    buffers = tuple(buffer(number, site, age) for (age, number), site in turns)
    return memrt.types.LeakGroup(None, buffers, None)


@pytest.mark.parametrize(
    ("ages", "numbers", "expected"),
    [
        (range(12, 0, -1), range(1, 37, 3), True),
        ([100, *range(12, 1, -1)], range(1, 37, 3), True),  # waited after the first
        (range(120, 108, -1), range(1, 37, 3), False),  # loaded at the start
        (range(12, 0, -1), range(1, 13), False),  # other allocations came later
        (range(9, 0, -1), range(1, 28, 3), False),  # too few
    ],
)
def test_growth_lasts_until_the_end_between_other_allocations(ages, numbers, expected):
    held = [group(ages, numbers)]
    seen = evidence(held=held, last=36, buffers=held[0].buffers)
    assert bool(list(find_growth(seen))) == expected


@pytest.mark.parametrize(
    ("sites", "expected"),
    [
        ([1], True),
        ([1, 2, 3, 4], False),  # 9 objects with four buffers each
        ([1, 1, 1, 2], True),  # 27 buffers of one call
        ([0], True),  # unknown calls
    ],
)
def test_growth_counts_buffers_of_one_call(monkeypatch, sites, expected):
    monkeypatch.setattr(held, "_inner_calls", lambda number: (number,))
    found = group(range(36, 0, -1), range(1, 109, 3), sites)
    seen = evidence(held=[found], last=108, buffers=found.buffers)
    texts = [each.text for each in find_growth(seen)]
    assert bool(texts) == expected
    assert all("36 buffers" in text for text in texts)


def test_calls_from_the_users_line_inwards_have_no_callers(monkeypatch):
    frames = (call("copy"), call("fit"), call("f", "/app/a.py"), call("g", "/app/b.py"))
    site = memrt.types.Site(1, frames)
    monkeypatch.setattr(held, "site_of", lambda number: site)
    assert held._inner_calls.__wrapped__(1) == frames[:2]


def test_growth_of_many_buffers_is_found():
    count = 200_000  # hours if the time were quadratic
    held = [group(range(count, 0, -1), range(1, 3 * count + 1, 3))]
    seen = evidence(held=held, last=3 * count, buffers=held[0].buffers)
    assert rules(find_growth(seen)) == ["growth"]


def test_growth_needs_freed_allocations_between():
    held = [group(range(12, 0, -1), range(1, 37, 3))]
    others = group([0] * 24, [n for n in range(1, 37) if n % 3 != 1])
    seen = evidence(held=held, last=36, buffers=[*held[0].buffers, *others.buffers])
    assert list(find_growth(seen)) == []


@pytest.mark.parametrize(("nbytes", "found"), [(65_535, []), (65_536, [65_536])])
def test_small_lost_buffers_are_no_finding(nbytes, found):
    (buffer,) = group([1], [1]).buffers
    lost = memrt.types.LeakGroup(None, (buffer._replace(nbytes=nbytes),), None)
    assert [each.bytes for each in find_lost(evidence(lost=[lost]))] == found


# --- Sampled contents. ---


def sampled(array):
    (found,) = sample_contents([(array.nbytes, array.ctypes.data, 7)], 1)
    return found


@pytest.mark.parametrize(
    ("array", "narrow"),
    [
        (np.random.default_rng(0).random(100_000), ""),
        (np.random.default_rng(0).random(100_000, np.float32).astype(np.float64), "float32"),
        (np.random.default_rng(0).integers(1, 1000, 100_000), "int16"),
        (np.random.default_rng(0).integers(1, 2**40, 100_000), ""),
        (np.random.default_rng(0).random(200_000, np.float32), ""),
        (np.random.default_rng(0).integers(0, 255, 800_000, np.uint8), ""),
        (np.arange(100_000) % 2, ""),  # flags
        (np.where(np.arange(100_000) % 9, 0, np.arange(100_000)), ""),  # mostly zeros
    ],
)
def test_narrow_type_holds_all_sampled_values(array, narrow):
    found = sampled(array)
    assert (found.narrow, found.site) == (narrow, 7)
    assert found.digest == sampled(array.copy()).digest


def test_constant_content_has_no_digest():
    assert sampled(np.ones(100_000)).digest == b""
    assert sampled(np.zeros(100_000)).digest == b""


def test_small_and_unreadable_buffers_have_no_content(monkeypatch):
    array = np.ones(100_000)
    assert sample_contents([(1000, array.ctypes.data, 1)], 9) == []
    assert sample_contents([(MIB, 4096, 1), (MIB, 2**64, 1)], 9) == []
    monkeypatch.setattr("memrt._process.smaps._open", lambda path: -1)
    assert sample_contents([(array.nbytes, array.ctypes.data, 1)], 9) == []


def test_only_the_largest_buffers_are_read():
    arrays = [np.ones(40_000 + 8 * i) for i in range(5)]
    rows = [(each.nbytes, each.ctypes.data, i) for i, each in enumerate(arrays)]
    assert [each.site for each in sample_contents(rows, 2)] == [4, 3]
    assert contents.MOST_BUFFERS * 8 * 2048 == 4 * MIB


def test_contents_count_only_if_a_second_sample_finds_them_again():
    arrays = [np.arange(40_000.0) + i for i in range(2)]
    rows = [(each.nbytes, each.ctypes.data, i) for i, each in enumerate(arrays)]
    candidates = Candidates(3.0, 7, sample_contents(rows, 2))
    assert len(candidates.contents) == 2
    arrays[0] += 1
    assert [each.site for each in candidates.unchanged()] == [1]
    assert candidates.unchanged(candidates.contents) == candidates.contents
    due = [candidates.are_due(t, alloc) for t, alloc in ((3.0, 7), (3.0, 8), (4.1, 7))]
    assert due == [False, True, True]
    assert not Candidates().are_due(9.0, 8)


# --- Advice, and the format. ---


@pytest.mark.parametrize(
    ("holder", "part"),
    [
        ("`app.tiles[...]`, through a view", ".copy()"),
        ("`x` in f() a.py:1, kept by a traceback", "__traceback__"),
        ("`app.f (a cached result)`", "maxsize"),
        ("`app.g (closure variable `x`)`", "drop the function with"),
        ("`app.f[...] (closure variable `x`)`", "drop the function with"),
        ("`app.g (closure variable `rows`)[...]`", "remove unused entries"),
        ("a named reference of C code", "release the named reference"),
        ("`app.CACHE[...]`", "weak references"),
        ("`app.TABLE`", "`del`"),
        ("an unnamed Python object and an unexplained reference", "leaks --native"),
        ("no Python object", "leaks --native"),
    ],
)
def test_advice_fits_the_holder(holder, part):
    assert part in fix_for(holder)


def test_invalid_findings_of_a_recording_are_refused(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import numpy as np; a = np.ones(10)")
    assert findings_of(script, tmp_path) == []
    (document,) = loads((tmp_path / "recording").read_bytes())
    del document["findings"]  # as in recordings of earlier releases
    assert loads(dumps([document]).encode()) == [document]
    with pytest.raises(RecordingError, match="'text' has an invalid value"):
        loads(
            dumps(
                [{**document, "findings": [{**Finding("x", 1, "", "").to_dict(), "text": 1}]}]
            ).encode()
        )


def test_holder_with_a_variable_comes_before_others():
    unknown = "`<memoryview> (a memoryview)`, without a known path from a variable"
    uses = [_Use(text, None) for text in (unknown, "`models[...].data`")]
    assert _Subject(MIB, True, 0, 0, 2, uses).shape == ("`models[...].data`", unknown)


def test_place_of_an_unknown_site_is_left_out():
    assert sites.place_of(0) is None


@pytest.mark.parametrize(
    ("holders", "clause"),
    [
        ({"`Index.tiles[...]`": 100}, ", held by `Index.tiles[...]`"),
        ({"`Index.tiles[...]`": 99, "`tile`": 1}, ", held by `Index.tiles[...]` (99 of 100)"),
        ({"`tiles`": 7, "`tiles` and others": 2, "`tile`": 1}, ", held by `tiles` (9 of 10)"),
        ({"`tiles`": 2, "`tiles` and others": 3}, ", held by `tiles` and others"),
        ({}, ""),
    ],
)
def test_holder_of_some_buffers_has_its_share(holders, clause):
    kinds = dict(enumerate(kind for kind, count in holders.items() for _ in range(count)))
    survey = SimpleNamespace(knows=kinds.__contains__, main_holder=kinds.get)
    holder = held.main_holder(evidence(survey=survey), [*kinds, "not surveyed"])
    assert holder.clause == clause
    assert held.main_holder(evidence(), list(kinds)).clause == ""


def anonymous_memory(kind, pages, used):
    """Return a buffer of anonymous memory, whose first pages are used."""
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=kind | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    array = np.frombuffer(memory, np.uint8)
    array[: used * mmap.PAGESIZE] = 1
    address = array.ctypes.data
    return array, buffer(1)._replace(address=address, nbytes=len(memory), kind="block")


@pytest.mark.parametrize(
    ("pages", "used", "unused"),
    [
        (1000, 500, 500),
        (1000, 501, 0),  # less than half is unused
        (1000, 0, 1000),
        (100, 0, 0),  # small
        (40_000, 10_000, 30_000),  # sampled
    ],
)
def test_pages_that_were_never_used_are_counted(pages, used, unused):
    array, found = anonymous_memory(mmap.MAP_PRIVATE, pages, used)
    counted = unused_bytes([found]).get(found.address, 0) / mmap.PAGESIZE
    assert counted == pytest.approx(unused, rel=0.02)
    others = [found._replace(kind="adopted"), found._replace(inherited=True)]
    assert unused_bytes(others) == {}
    array[:] = 1
    assert unused_bytes([found]) == {}


def test_shared_memory_may_be_used_by_other_processes():
    array, found = anonymous_memory(mmap.MAP_SHARED, 1000, 0)
    assert unused_bytes([found]) == {}
    del array


@pytest.mark.parametrize(("mib", "expected"), [(2, True), (1.9, False)])
def test_untouched_arrays_are_a_fifth_of_the_peak(mib, expected):
    found = buffer(1)._replace(nbytes=3 * MIB)
    seen = evidence(buffers=[found, buffer(2)], unused={found.address: int(mib * MIB)})
    texts = [each.text for each in find_untouched(seen)]
    assert bool(texts) == expected
    assert all("2.0 MiB of 3.0 MiB were neither written nor read" in text for text in texts)
    assert list(find_untouched(evidence(buffers=[found]))) == []
