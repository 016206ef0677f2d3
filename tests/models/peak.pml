/* Model of the peak of a level, as in runtime/stats: one gauge climbs and reports, and another thread
 * reads. Each step of an atomic operation is one step of the model, and memory is
 * sequentially consistent. peak_above.c and peak_below.c check memory orders. At most two units are
 * in use, so the peak is 2. In the second round, the gauge reports one unit ahead.
 *
 * With FAULT set, a step is wrong, and the checker must report an error:
 *   1  a reader does not check whether a fall was reported during the read
 *   2  a fall is counted before the level has the new value
 *   3  a reader loads the peak before the gauge
 *   4  the gauge shows its rise during a report
 *   5  the limit changes before the end of the climb
 *   6  a reader does not check whether the climb ended during the read
 *   7  the gauge reports ahead beyond the peak
 */
#ifndef FAULT
#define FAULT 0
#endif

#define REPORTS (-100)
#define LOOKS 2

int limit, left, high, reported, climbs; /* the gauge; during a climb, limit - left is in use */
int flushed, peak, falls;        /* the level; falls are counted beside the gauge */

inline raise(value)
{
    d_step {
        if
        :: value > peak -> peak = value
        :: else
        fi
    }
}

inline tell()
{
    change = net + ahead - reported;
    rise = high - reported;
    before = flushed;
    raise(before + rise);
#if FAULT != 4
    high = REPORTS;
#endif
#if FAULT == 2
    falls = falls + (change < 0 -> 1 : 0);
#endif
    d_step { before = flushed; flushed = flushed + change }
    raise(before + rise);
#if FAULT != 2
    falls = falls + (change < 0 -> 1 : 0);
#endif
    reported = net + ahead;
    high = net + ahead
}

/* The peak changes only by the worker, so one step reads it and the level. */
inline tell_of_rise()
{
#if FAULT == 7
    ahead = 1;
#else
    ahead = (peak - flushed - (net - reported) > 0 -> 1 : 0);
#endif
    tell();
    ahead = 0
}

inline start_climb()
{
    limit = 5 + 3 * round;
    left = limit - net;
    climbs++
}

inline end_climb()
{
    high = net;
    climbs++
}

inline allocate(units)
{
    if
    :: net < high -> net = net + units /* below the bytes reported ahead */
    :: else ->
        start_climb();
        d_step { net = net + units; left = left - units }
#if FAULT == 5
        limit = limit + 3;
#endif
        end_climb()
    fi
}

inline free_all()
{
    net = 0;
    tell()
}

proctype worker()
{
    int net, change, rise, before, ahead;
    byte round;
    allocate(2);
    if
    :: tell_of_rise()
    :: skip
    fi;
    free_all();
    round++;
    allocate(1);
    tell_of_rise();
    allocate(1);
    free_all()
}

inline read_maximum()
{
    climb = climbs;
    used = limit;
    used = used - left;
#if FAULT == 6
    now = climb;
#else
    now = climbs;
#endif
    first = high;
    if
    :: climb % 2 == 1 && now == climb && first != REPORTS && used > first -> first = used
    :: else
    fi
}

inline look()
{
    fallen = falls;
    sum = flushed;
    read_maximum();
    base = reported;
    second = high;
    sum = sum + (first == REPORTS || second == REPORTS -> REPORTS : first) - base;
#if FAULT == 1
    seen = (sum > 0 -> sum : 0);
#else
    if
    :: falls == fallen && sum > 0 -> seen = sum
    :: else -> seen = 0
    fi
#endif
}

inline read_peak()
{
    looks = 0;
    seen = 0;
#if FAULT == 3
    known = peak;
#endif
    do
    :: looks < LOOKS && seen == 0 -> look(); looks++
    :: else -> break
    od;
#if FAULT != 3
    known = peak;
#endif
    seen = (seen > known -> seen : known)
}

proctype reader()
{
    int sum, first, second, base, fallen, known, seen, earlier, climb, now, used;
    byte looks;
    read_peak();
    assert(seen <= 2);
    earlier = seen;
    read_peak();
    assert(seen <= 2 && seen >= earlier)
}

init {
    atomic {
        run worker();
        run reader()
    }
    (_nr_pr == 1);
    assert(peak == 2 && flushed == 0)
}
