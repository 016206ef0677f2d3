"""Statistics: snapshots, differences, accounts."""

import dataclasses
import random
import threading

import memrt
import numpy as np
import pytest
from atonce import on_threads


def test_fields_match_the_c_struct_in_order():
    names = [field.name for field in dataclasses.fields(memrt.types.Stats)]
    header = f"{memrt.get_include()}/memrt/observe/stats.h"
    with open(header, encoding="utf-8") as file:
        body = file.read().split("typedef struct memrt_stats {")[1].split("}")[0]
    declared = [line.split(";")[0].split()[-1] for line in body.splitlines() if ";" in line]
    assert ["struct_size", *names] == declared


def test_snapshot_converts_to_a_dict_and_is_frozen():
    stats = memrt.stats()
    assert memrt.types.Stats(**stats.to_dict()) == stats
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.live = 0


def test_difference_of_two_snapshots_measures_a_block_of_code():
    memrt.debug.reset_peak()
    before = memrt.stats()
    a = memrt.zeros(1000, "u1")
    b = memrt.zeros(500, "u1")
    del b
    change = memrt.stats() - before
    assert (change.alloc, change.free, change.mi_alloc, change.mi_free) == (2, 1, 2, 1)
    assert (change.live, change.total) == (1000, 1500)
    assert abs(change.peak - 1500) <= change.peak_error
    assert change.realloc == change.failed == 0
    assert a.base.nbytes == 1000
    with pytest.raises(TypeError):
        before - 5


def test_difference_adds_errors_and_subtracts_all_other_fields():
    names = [field.name for field in dataclasses.fields(memrt.types.Stats)]
    before = memrt.types.Stats(*range(1, len(names) + 1))
    after = memrt.types.Stats(*(1000 * n for n in range(1, len(names) + 1)))
    change = (after - before).to_dict()
    for number, name in enumerate(names, 1):
        sign = 1 if name in ("peak_error", "inherited_error") else -1
        assert change[name] == 1000 * number + sign * number, name


def test_realloc_adds_growth_to_total_and_updates_live():
    policy = memrt.Policy()
    with policy:
        a = np.zeros(1000, "u1")
    before = policy.stats()
    a.resize(5000, refcheck=False)
    a.resize(100, refcheck=False)
    change = policy.stats() - before
    assert (change.realloc, change.live, change.total) == (2, -900, 4000)
    assert (change.alloc, change.free) == (0, 0)


def test_refused_request_counts_only_as_failed():
    before = memrt.stats()
    with memrt.testing.fail_allocations(), pytest.raises(MemoryError):
        memrt.alloc(1000)
    change = memrt.stats() - before
    changed = {name for name, value in change.to_dict().items() if value}
    assert change.failed == 1
    assert changed - {"peak_error"} == {"failed"}


def test_allocation_stats_are_a_named_tuple_of_4_counters():
    stats, four = memrt.stats(), memrt.telemetry.get_allocation_stats()
    assert four._fields == ("alloc", "free", "mi_alloc", "mi_free")
    assert four == (stats.alloc, stats.free, stats.mi_alloc, stats.mi_free)


def test_reset_peak_restarts_at_the_live_bytes():
    policy = memrt.Policy()
    kept = memrt.empty(1000, "u1", policy=policy)
    memrt.empty(9000, "u1", policy=policy)
    stats = policy.stats()
    assert abs(stats.peak - 10_000) <= stats.peak_error
    memrt.debug.reset_peak(policy)
    stats = policy.stats()
    assert abs(stats.peak - kept.nbytes) <= stats.peak_error


def test_counts_are_exact_after_threads_end():
    rounds, policy = 2000, memrt.Policy()

    def work(_number):
        for _ in range(rounds):
            memrt.empty(10, "u1", policy=policy)

    on_threads(work, 4)
    stats = policy.stats()
    assert (stats.alloc, stats.free, stats.total) == (4 * rounds, 4 * rounds, 40 * rounds)
    assert stats.live == 0


def test_free_on_another_thread_balances_the_counts():
    policy, taken = memrt.Policy(), threading.Event()
    box = []

    def consumer():
        taken.wait(30)
        box.clear()

    thread = threading.Thread(target=consumer)
    thread.start()
    box.extend(memrt.empty(100, "u1", policy=policy) for _ in range(500))
    live = policy.stats().live
    taken.set()
    thread.join()
    stats = policy.stats()
    assert live == 50_000
    assert (stats.live, stats.alloc - stats.free) == (0, 0)
    assert stats.peak >= 50_000 - stats.peak_error


def test_reserved_bytes_include_headers():
    policy = memrt.Policy()
    a = memrt.empty(1000, "u1", policy=policy)
    assert policy.stats().reserved >= 1000 + 64
    del a
    assert policy.stats().reserved == policy.stats().cached


def test_repr_shows_rounded_and_exact_numbers():
    kept = memrt.zeros(3 * 2**20, "u1", policy=(policy := memrt.Policy()))
    text = repr(policy.stats())
    assert f"{kept.nbytes:,} bytes" in text
    assert "3.0 MiB" in text
    assert len(text.splitlines()) == 1 + len(dataclasses.fields(memrt.types.Stats))


@pytest.mark.parametrize("nonsense", ["default", 5, object()])
def test_stats_of_a_non_policy_raises_type_error(nonsense):
    for call in (memrt.stats, memrt.debug.reset_peak):
        with pytest.raises(TypeError, match=r"memrt\.Policy"):
            call(nonsense)


def test_release_unused_empties_the_cache():
    memrt.release_unused()
    assert memrt.stats().cached == 0
    assert memrt.release_unused() == 0


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (-1536, "-1.5 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (3 * 2**30, "3.0 GiB"),
        (2**64, "16.0 EiB"),
        (2**80, "1048576.0 EiB"),
    ],
)
def test_amounts_are_written_with_binary_units(count, text):
    from memrt._support.units import human_bytes

    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("text", "count"), [("7", 7), ("20000", 20_000), ("20K", 20_000), (" 3 m ", 3_000_000)]
)
def test_counts_are_read_with_decimal_units(text, count):
    from memrt._support.units import parse_count

    assert parse_count(text) == count


def allocate_by_the_book(policy, scopes):
    """Allocate and free in threads under a lock. Return the peaks of the policy and the scopes from
    a separate ledger.
    """
    lock, book = threading.Lock(), {name: [0, 0] for name in ("policy", *scopes)}

    def count(names, more):
        for name in names:
            book[name][0] += more
            book[name][1] = max(book[name])

    def work(seed):
        chance, kept = random.Random(seed), []
        for _ in range(400):
            with lock:
                if kept and chance.random() < 0.5:
                    names, array = kept.pop(chance.randrange(len(kept)))
                    count(names, -array.nbytes)
                    del array
                else:
                    name = chance.choice(list(scopes))
                    array = None
                    with scopes[name]:
                        size = chance.choice([5, 800, 30_000, 2_000_000])
                        array = memrt.empty(size, "u1", policy=policy)
                    kept.append((("policy", name), array))
                    count(("policy", name), size)
        with lock:
            for names, array in kept:
                count(names, -array.nbytes)
            kept.clear()
            array = None

    on_threads(work, 4)
    return {name: most for name, (_, most) in book.items()}


def test_exact_peaks_equal_a_separate_ledger():
    with memrt.debug.exact_peak():
        policy = memrt.Policy(name="exact")
        names = ("first of exact", "second of exact")
        expected = allocate_by_the_book(policy, {name: memrt.scope(name) for name in names})
        found = {s.name: s.stats() for s in memrt.scopes() if s.name in names}
        found["policy"] = policy.stats()
    assert {name: stats.peak for name, stats in found.items()} == expected
    assert all(stats.peak_error == 0 for stats in found.values())
    assert " exact" in repr(found["policy"])


def test_bounded_peaks_are_within_peak_error_of_a_ledger():
    policy = memrt.Policy(name="bounded")
    names = ("first of bounded", "second of bounded")
    expected = allocate_by_the_book(policy, {name: memrt.scope(name) for name in names})
    found = {s.name: s.stats() for s in memrt.scopes() if s.name in names}
    found["policy"] = policy.stats()
    for name, stats in found.items():
        assert abs(stats.peak - expected[name]) <= stats.peak_error


def peak_in_force():
    return next(o.value for o in memrt.debug.options() if o.name == "MEMRT_PEAK")


def test_exact_peak_mode_lasts_until_the_last_exit():
    before, inside = peak_in_force(), threading.Barrier(3)

    def ask(_):
        with memrt.debug.exact_peak():
            inside.wait(30)
            assert peak_in_force() == "exact"

    with memrt.debug.exact_peak(), memrt.debug.exact_peak():
        on_threads(ask, 3)
        assert peak_in_force() == "exact"
    assert peak_in_force() == before
    with pytest.raises(RuntimeError, match="more often"):
        memrt.debug.exact_peak().__exit__()


def test_repr_shows_the_precision_of_the_peak():
    fields = dict.fromkeys(memrt.stats().to_dict(), 0)
    assert "(0 bytes) exact" in repr(memrt.types.Stats(**fields))
    assert "(0 bytes) ± 2.0 MiB" in repr(memrt.types.Stats(**{**fields, "peak_error": 2 << 20}))


def test_sizes_count_blocks_of_policy_and_process_by_doublings():
    before = memrt.debug.sizes(live=True)
    policy = memrt.Policy(name="sizes")
    kept = [memrt.alloc(size, policy=policy) for size in (0, 1, 3, 1000, 1024)]
    with policy:
        kept.append(np.empty(40, "u1"))
    del kept[2:4]
    assert (
        memrt.debug.sizes(policy) == policy.sizes() == {1: 1, 2: 1, 4: 1, 64: 1, 1024: 1, 2048: 1}
    )
    assert policy.sizes(live=True) == {1: 1, 2: 1, 64: 1, 2048: 1}
    after = memrt.debug.sizes(live=True)
    assert {k: n for k in after if (n := after[k] - before.get(k, 0))} == policy.sizes(live=True)
    assert sum(policy.sizes().values()) == policy.stats().alloc


@pytest.mark.parametrize("argument", [5, "policy"])
def test_sizes_refuse_what_is_no_policy(argument):
    with pytest.raises(TypeError, match="Policy"):
        memrt.debug.sizes(argument)
