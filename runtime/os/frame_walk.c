#include "runtime/os/frame_walk.h"

#if MEMRT__FRAME_WALK

#include <stddef.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/os/frame_layout.h"
#include "runtime/os/loaded_object.h"
#include "runtime/os/own_stack.h"

/* The table has sets of two slots. The low bits of an address are the number of the set. A slot is
   one word, so that readers need no lock: the other bits of the address, the number of the object,
   and the layout. Any mixing of the address would lengthen the path from one frame to the next. */
#define SET_BITS 11
#define ADDRESS_BITS 47 /* of user space, with page tables of four levels */
#define LAYOUT_BITS 19
#define OBJECT_BITS 9
#define TAG_SHIFT (LAYOUT_BITS + OBJECT_BITS)
_Static_assert(ADDRESS_BITS - SET_BITS + TAG_SHIFT == 64, "a slot is one word");
_Static_assert(MEMRT__OBJECTS == 1u << OBJECT_BITS, "each object has a number");

/* Parts of a layout. A CFA of 0 words marks the other kinds. */
#define FROM_RBP 1u
#define CFA_SHIFT 1
#define RBP_SHIFT 13
#define CFA_MASK MEMRT__FRAME_CFA_MAX
#define RBP_MASK MEMRT__FRAME_RBP_MAX
_Static_assert(CFA_MASK == (1u << (RBP_SHIFT - CFA_SHIFT)) - 1, "bits of the CFA");
_Static_assert(RBP_MASK == (1u << (LAYOUT_BITS - RBP_SHIFT)) - 1, "bits of rbp");
#define LAYOUT_MASK ((1u << LAYOUT_BITS) - 1)
#define UNKNOWN (1u << RBP_SHIFT)
#define OUTERMOST (2u << RBP_SHIFT)

/// Slots of a set, the last stored first. Stores are releases, after the record of the object;
/// partner: the acquire loads in find_slot().
typedef struct set {
    size_t slots[2];
} set_t;

static _Alignas(MEMRT__CACHE_LINE) set_t sets[1 << SET_BITS];

static inline set_t *get_set(uintptr_t pc)
{
    return &sets[pc & ((1u << SET_BITS) - 1)];
}

/// Return whether the value of a slot is for an address of the same set.
static inline bool is_entry_of(size_t entry, uintptr_t pc)
{
    return entry >> TAG_SHIFT == pc >> SET_BITS;
}

/// Return the slot of an address, or another slot without one.
static inline size_t find_slot(uintptr_t pc)
{
    const set_t *set = get_set(pc);
    size_t entry = memrt__load_acquire(&set->slots[0]);
    return MEMRT__LIKELY(is_entry_of(entry, pc)) ? entry : memrt__load_acquire(&set->slots[1]);
}

/// Return the bits of a slot that describe a layout of an object's code.
static size_t encode_layout(const memrt__frame_layout_t *layout, size_t object)
{
    size_t bits = OUTERMOST;
    if (layout->kind != MEMRT__FRAME_OUTERMOST) {
        bits = (size_t)layout->rbp << RBP_SHIFT | (size_t)layout->cfa << CFA_SHIFT |
               (layout->from_rbp ? FROM_RBP : 0);
    }
    MEMRT__ASSERT(layout->kind != MEMRT__FRAME_UNKNOWN && bits >> LAYOUT_BITS == 0);
    return bits | object << LAYOUT_BITS;
}

static size_t get_object(size_t entry)
{
    return entry >> LAYOUT_BITS & (MEMRT__OBJECTS - 1);
}

typedef struct search {
    uintptr_t pc;
    size_t entry; ///< result, without the tag
} search_t;

static void find_in_object(const memrt__loaded_object_t *object, void *argument)
{
    search_t *search = argument;
    memrt__frame_layout_t layout = memrt__frame_layout_find(object, search->pc - 1);
    size_t number;
    if (layout.kind != MEMRT__FRAME_UNKNOWN &&
        memrt__loaded_object_register(object, search->pc - 1, &number)) {
        search->entry = encode_layout(&layout, number);
    }
}

/// Find the layout of an address in the loaded objects, and store the layout in the table. Unknown
/// layouts are stored, too. An unknown layout stays valid after any change of the loaded objects,
/// because the unwinder then decides.
static size_t find_entry(uintptr_t pc)
{
    search_t search = {pc, UNKNOWN};
    set_t *set = get_set(pc);
    (void)memrt__loaded_object_visit(pc - 1, find_in_object, &search);
    memrt__store_release(&set->slots[1], memrt__load_acquire(&set->slots[0]));
    memrt__store_release(&set->slots[0], pc >> SET_BITS << TAG_SHIFT | search.entry);
    return search.entry;
}

typedef struct walk {
    uintptr_t pc, rsp, rbp;
    uintptr_t end;   ///< of the stack
    size_t verified; ///< number of the object that is known to be loaded
    bool may_find;
} walk_t;

/// Return whether an entry of the table describes the object that is loaded now.
static inline bool is_current(walk_t *walk, size_t entry)
{
    size_t object = get_object(entry);
    if (object == MEMRT__OBJECT_PERMANENT || object == walk->verified) {
        return true;
    }
    if (!memrt__loaded_object_is_at(object, walk->pc - 1)) {
        return false;
    }
    walk->verified = object;
    return true;
}

/// Return the bits of the layout at the address of the walk. No layout has all bits 0.
static inline size_t get_layout(walk_t *walk)
{
    size_t entry = find_slot(walk->pc);
    if (MEMRT__UNLIKELY(!is_entry_of(entry, walk->pc) || (entry & LAYOUT_MASK) == 0 ||
                        !is_current(walk, entry))) {
        entry = walk->may_find ? find_entry(walk->pc) : UNKNOWN;
    }
    return entry & LAYOUT_MASK;
}

/// Read a word of the stack. The word belongs to other functions, which sanitizers do not expect.
__attribute__((no_sanitize("address", "thread"))) static inline uintptr_t read_word(uintptr_t at)
{
    return *(const uintptr_t *)at;
}

/// Go to the caller's frame. Returns false where the layout leaves the stack.
static inline bool step(walk_t *walk, size_t layout)
{
    uintptr_t cfa = walk->rsp + (layout >> CFA_SHIFT & CFA_MASK) * 8;
    if (MEMRT__UNLIKELY((layout & FROM_RBP) != 0)) {
        cfa += walk->rbp - walk->rsp;
    }
    size_t words = layout >> RBP_SHIFT;
    uintptr_t frame = cfa - walk->rsp; /* bytes of the frame; wraps below the stack pointer */
    if (MEMRT__UNLIKELY(cfa % 8 != 0 || frame == 0 || frame > walk->end - walk->rsp ||
                        words * 8 > frame)) {
        return false;
    }
    walk->pc = read_word(cfa - 8);
    if (words != 0) {
        walk->rbp = read_word(cfa - words * 8);
    }
    walk->rsp = cfa;
    return walk->pc >> ADDRESS_BITS == 0;
}

int memrt__frame_walk(const memrt__frame_registers_t *from, void **frames, int max, bool may_find)
{
    walk_t walk = {from->pc,
                   from->rsp,
                   from->rbp,
                   memrt__own_stack_end(from->rsp, may_find),
                   MEMRT__OBJECT_PERMANENT,
                   may_find};
    if (walk.end == 0) {
        return -1;
    }
    for (int count = 0; count < max; count++) {
        frames[count] = (void *)walk.pc;
        if (count + 1 == max) {
            return max;
        }
        size_t layout = get_layout(&walk);
        if (layout == OUTERMOST) {
            return count + 1;
        }
        if (layout == UNKNOWN || !step(&walk, layout)) {
            return -1;
        }
    }
    return 0;
}

void memrt__frame_walk_start(void)
{
    memrt__loaded_object_start();
    memrt__own_stack_start();
}

#endif
