/// Model: two threads find the layouts of two addresses, and store both layouts in the same set.
/// Another thread that finds a layout in the set also sees the record of its object.

#include "tests/models/model.h"

#include "runtime/os/frame_walk.c"

enum { PC = 1 << SET_BITS, OTHER_PC = 2 << SET_BITS };

static uintptr_t records[3]; /* by number of the object: an address of the object */

/// Register an object without looking for one.
bool memrt__loaded_object_visit(uintptr_t address,
                                void (*visit)(const memrt__loaded_object_t *object, void *context),
                                void *context)
{
    (void)visit;
    size_t number = (address + 1) >> SET_BITS;
    records[number] = address;
    ((search_t *)context)->entry = number << LAYOUT_BITS | 1 << CFA_SHIFT;
    return true;
}

bool memrt__loaded_object_is_at(size_t number, uintptr_t address)
{
    return records[number] == address;
}

static void *find_layout(void *pc)
{
    find_entry((uintptr_t)pc);
    return NULL;
}

int main(void)
{
    pthread_t a = model_thread(find_layout, (void *)PC);
    pthread_t b = model_thread(find_layout, (void *)OTHER_PC);
    size_t entry = find_slot(PC);
    assert(!is_entry_of(entry, PC) || memrt__loaded_object_is_at(get_object(entry), PC - 1));
    model_join(a);
    model_join(b);
    return 0;
}
