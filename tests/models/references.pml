/* Model of a block's reference count, as in runtime/meminfo: holders release, a finder acquires a
 * reference under the lock of the live set, a holder claims the block for a resize. Each step of an
 * atomic operation is one step of the model, and memory is sequentially consistent. The C models in
 * the same folder check memory orders.
 *
 * With FAULT set, a step is wrong, and the checker must report an error:
 *   1  a release reads and writes the count in two steps
 *   2  the finder does not check for a count of 0
 *   3  a block stays in the live set until after its free
 *   4  a claim does not keep finders out
 */
#ifndef FAULT
#define FAULT 0
#endif

byte count, destroyed, frees, using;
bool listed, claimed, locked;

/* Each use of the data requires a block that is neither freed nor claimed. */
#define USE() \
    assert(frees == 0 && !claimed); \
    using++; \
    using--

inline lock_live()
{
    atomic { !locked; locked = true }
}

inline leave_live()
{
    lock_live();
    listed = false;
    locked = false
}

inline destroy()
{
    destroyed++;
    assert(destroyed == 1 && using == 0);
#if FAULT == 3
    frees++;
    leave_live()
#else
    leave_live();
    frees++
#endif
}

inline release()
{
#if FAULT == 1
    before = count;
    count = before - 1;
#else
    d_step { before = count; count = before - 1 }
#endif
    assert(before > 0);
    if
    :: before == 1 -> destroy()
    :: else
    fi
}

proctype holder()
{
    byte before;
    USE();
    d_step { count++ }
    release();
    release();
}

proctype finder()
{
    byte before;
    bool got;
    lock_live();
    if
    :: listed ->
        assert(frees == 0);
#if FAULT == 2
        d_step { count++; got = true }
#else
        do
        :: before = count;
            if
            :: before == 0 -> break
            :: else ->
                d_step {
                    if
                    :: count == before -> count++; got = true
                    :: else
                    fi
                }
                if
                :: got -> break
                :: else
                fi
            fi
        od
#endif
    :: else
    fi;
    locked = false;
    if
    :: got -> USE(); release()
    :: else
    fi
}

proctype resizer()
{
    byte before;
    bool got;
#if FAULT == 4
    got = (count == 1);
#else
    d_step {
        if
        :: count == 1 -> count = 0; got = true
        :: else
        fi
    }
#endif
    if
    :: got ->
        claimed = true;
        assert(using == 0);
        claimed = false;
        count = 1
    :: else
    fi;
    release()
}

init {
    atomic {
        count = 2;
        listed = true;
        run holder();
        run resizer();
        run finder();
        run finder()
    }
    (_nr_pr == 1);
    assert(destroyed == 1 && frees == 1 && !listed)
}
