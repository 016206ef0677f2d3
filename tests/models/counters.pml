/* Model of the counter of bytes in a shard, as in runtime/stats/shard.c: the owner counts on the
 * fast path and on the slow path, and another thread reads twice. Each access of a word is one step
 * of the model, and memory is sequentially consistent.
 *
 * A result must be a value that the counter had during the reading.
 *
 * With FAULT set, a step is wrong, and the checker must report an error:
 *   1  a reader does not check whether the owner entered or left the slow path meanwhile
 *   2  the slow path begins before its counter has the value
 *   3  the fast path begins before its limit belongs to the new number
 *   4  the owner changes the limit before it leaves the fast path
 */
#ifndef FAULT
#define FAULT 0
#endif

#define ROUNDS 2

int limit = 5, left = 5; /* on the fast path, limit - left is the counter */
int slow;                /* on the slow path, the counter */
int sequence;            /* odd: the owner is on the slow path */
int counted;             /* the true value, changed together with the counter */

proctype owner()
{
    byte round;
    do
    :: round < ROUNDS ->
        d_step { left--; counted++ }
        /* The slow path begins. */
#if FAULT == 4
        limit = limit + 7;
        left = left + 7;
#endif
#if FAULT != 2
        slow = limit - left;
#endif
        sequence++;
#if FAULT == 2
        slow = limit - left;
#endif
        d_step { slow++; counted++ }
        /* The slow path ends. */
#if FAULT == 3
        sequence++;
#endif
        left = 6 + 2 * round;
        limit = slow + left;
#if FAULT != 3
        sequence++;
#endif
        round++
    :: else -> break
    od
}

inline read_counter()
{
    now = sequence;
    do
    :: before = now;
        if
        :: before % 2 == 1 -> seen = slow
        :: else ->
            seen = limit;
            seen = seen - left
        fi;
#if FAULT == 1
        break;
#endif
        now = sequence;
        if
        :: now == before -> break
        :: else
        fi
    od
}

proctype reader()
{
    int before, now, seen, least;
    byte reading;
    do
    :: reading < 2 ->
        least = counted;
        read_counter();
        assert(least <= seen && seen <= counted);
        reading++
    :: else -> break
    od
}

init {
    atomic {
        run owner();
        run reader()
    }
}
