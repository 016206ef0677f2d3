/// Model: two threads intern the same string, and the table grows. One of the threads also looks up
/// the string by number, and looks up an older string. Each look-up gets a complete string or none;
/// both threads get the same string, and the older string is always found.

#include "tests/models/model.h"

#include "runtime/observe/intern_table.h"

/* A chunk for each string, to keep memory small. */
#undef MEMRT__INTERNED_CHUNK
#define MEMRT__INTERNED_CHUNK 1u

/* The checker lacks copies and comparisons of variable size. All strings here are words. */
static inline void copy_words(uint64_t *to, const uint64_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(*to); i++) {
        to[i] = from[i];
    }
}

static inline int compare_words(const uint64_t *a, const uint64_t *b, size_t bytes)
{
    assert(bytes == sizeof(*a));
    return *a != *b;
}

static size_t memory[32], memory_used; /* under the lock */

static inline void *allocate_words(size_t bytes)
{
    size_t at = memory_used;
    memory_used += bytes / sizeof(memory[0]);
    assert(memory_used <= sizeof(memory) / sizeof(memory[0]));
    return &memory[at];
}

#define memcpy(to, from, bytes) copy_words((uint64_t *)(to), (const uint64_t *)(from), bytes)
#define memcmp(a, b, bytes) compare_words((const uint64_t *)(a), (const uint64_t *)(b), bytes)
#define calloc(count, bytes) allocate_words((count) * (bytes))

#include "runtime/observe/intern_table.c"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

bool memrt__lock_or_fork(memrt__rank_t rank)
{
    assert(rank == MEMRT__RANK_INTERNED);
    pthread_mutex_lock(&mutex);
    return true;
}

void memrt__unlock(memrt__rank_t rank)
{
    (void)rank;
    pthread_mutex_unlock(&mutex);
}

/* Variable pointers, because the checker refuses the loop of hash_bytes() for a constant. */
static uint64_t old_word = 5, new_word = 7, *old_text = &old_word, *new_text = &new_word;
static memrt__interns_t set;
static size_t first_table[2 + 4]; /* a table of 4 slots, which is full with one string */

static void *intern_new_text(void *context)
{
    return memrt__intern(&set, new_text, sizeof(*new_text));
}

static void check_new_text(const memrt__interned_t *found)
{
    assert(found->number == 2 && found->length == sizeof(*new_text) &&
           found->words[0] == *new_text);
}

int main(void)
{
    ((table_t *)first_table)->mask = 3;
    set.table = (size_t)first_table;
    memrt__interned_t *old = memrt__intern(&set, old_text, sizeof(*old_text));
    assert(old->number == 1 && set.table == (size_t)first_table);
    pthread_t other = model_thread(intern_new_text, NULL);
    const memrt__interned_t *by_number = memrt__interned_at(&set, 2);
    if (by_number != NULL) {
        check_new_text(by_number);
    }
    const memrt__interned_t *found = memrt__intern(&set, new_text, sizeof(*new_text));
    check_new_text(found);
    assert(by_number == NULL || by_number == found);
    assert(memrt__interned_find(&set, old_text, sizeof(*old_text)) == old);
    model_join(other);
    assert(set.table != (size_t)first_table && memrt__interned_at(&set, 2) == found);
    return 0;
}
