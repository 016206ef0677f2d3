#include "runtime/event/operation_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/config/options.h"
#include "runtime/observe/live_set.h"
#include "runtime/os/os.h"

/// Blocks with a line.
enum { CHOICE_NONE, CHOICE_ALL, CHOICE_ADDRESS, CHOICE_NAME };

#define NAME_WORDS ((MEMRT_NAME_MAX + 1) / sizeof(size_t))

/// The choice. The operands are relaxed: a thread that reads during a change may miss the block of
/// either choice. Release order of `choice`; partner: the acquire load of memrt__log_take().
static size_t choice, chosen_address, chosen_name[NAME_WORDS];

static void choose_name(const char *name)
{
    size_t words[NAME_WORDS] = {0};
    MEMRT__ASSERT(strlen(name) <= MEMRT_NAME_MAX);
    memcpy(words, name, strlen(name));
    for (size_t i = 0; i < NAME_WORDS; i++) {
        memrt__store_relaxed(&chosen_name[i], words[i]);
    }
}

void memrt__log_choose(const char *value)
{
    size_t next = CHOICE_NAME;
    memrt__store_relaxed(&choice, CHOICE_NONE);
    if (strcmp(value, "none") == 0 || strcmp(value, "later") == 0) {
        next = CHOICE_NONE;
    } else if (strcmp(value, "all") == 0) {
        next = CHOICE_ALL;
    } else if (strncmp(value, "0x", 2) == 0) {
        next = CHOICE_ADDRESS;
        memrt__store_relaxed(&chosen_address, strtoull(value, NULL, 16));
    } else {
        choose_name(value);
    }
    memrt__store_release(&choice, next);
}

static bool is_chosen_address(const void *mi, const void *data)
{
    size_t address = memrt__load_relaxed(&chosen_address);
    return (size_t)mi == address || (size_t)data == address;
}

static bool is_chosen_name(const char *name)
{
    size_t words[NAME_WORDS];
    bool equal = true;
    memcpy(words, name, sizeof(words));
    for (size_t i = 0; i < NAME_WORDS; i++) {
        equal &= words[i] == memrt__load_relaxed(&chosen_name[i]);
    }
    return equal;
}

/// Fill in the facts of a block. Another holder may grow the data meanwhile.
static void fill_facts(const memrt_meminfo_t *mi, memrt__logged_t *out)
{
    *out = (memrt__logged_t){.mi = mi, .size = memrt__load_relaxed(&mi->size)};
    out->data = (const void *)memrt__load_relaxed((const size_t *)&mi->data);
    if (memrt__block_is_listed(mi)) {
        memrt__live_name((uintptr_t)mi, out->name);
    }
}

bool memrt__log_take(const memrt_meminfo_t *mi, memrt__logged_t *out)
{
    size_t wanted = memrt__load_acquire(&choice);
    if (wanted == CHOICE_NONE) {
        return false;
    }
    fill_facts(mi, out);
    return wanted == CHOICE_ALL || (wanted == CHOICE_ADDRESS ? is_chosen_address(mi, out->data)
                                                             : is_chosen_name(out->name));
}

/// Replace bytes of a name that would end or hide the line.
static void clean_name(char *name)
{
    for (; *name != '\0'; name++) {
        if ((unsigned char)*name < ' ' || *name == 0x7F) {
            *name = '?';
        }
    }
}

/// Write a line, with `change` behind the facts of the block. One call, so that lines of threads
/// and processes do not mix.
static void write_line(const memrt__logged_t *logged, const char *operation, const char *change)
{
    MEMRT__SHIELD;
    char name[MEMRT_NAME_MAX + 1], line[320];
    memcpy(name, logged->name, sizeof(name));
    clean_name(name);
    bool named = name[0] != '\0';
    int length =
        snprintf(line, sizeof(line),
                 "memrt: %s %#" PRIxPTR " (%zu bytes at %#" PRIxPTR "%s%s%s)%s, thread "
                 "%" PRIu64 "\n",
                 operation, (uintptr_t)logged->mi, logged->size, (uintptr_t)logged->data,
                 named ? ", \"" : "", name, named ? "\"" : "", change, memrt__os_thread_id());
    MEMRT__ASSERT(length > 0 && (size_t)length < sizeof(line));
    (void)!write(STDERR_FILENO, line, (size_t)length); /* no channel is left for a failure */
}

void memrt__log_count(const memrt__logged_t *logged, const char *operation, size_t before,
                      size_t after)
{
    char change[60];
    snprintf(change, sizeof(change), " refcount %zu -> %zu", before, after);
    write_line(logged, operation, change);
}

void memrt__log_name(const memrt_meminfo_t *mi)
{
    memrt__logged_t logged;
    if (memrt__log_take(mi, &logged)) {
        write_line(&logged, "name", "");
    }
}

/// Write the line of a resize, also of a block that the resize moved away from the chosen address.
static void log_resize(const memrt__block_event_t *event)
{
    const memrt__block_before_t *before = event->before;
    memrt__logged_t logged;
    bool moved = memrt__load_acquire(&choice) == CHOICE_ADDRESS &&
                 is_chosen_address(before->mi, before->data);
    if (memrt__log_take(event->mi, &logged) || moved) {
        char change[80];
        snprintf(change, sizeof(change), " from %zu bytes at %#" PRIxPTR, before->size,
                 (uintptr_t)before->data);
        write_line(&logged, "resize", change);
    }
}

void memrt__log_observe(const memrt__block_event_t *event)
{
    memrt__logged_t logged;
    if (!memrt__options.log || event->mi == NULL) {
        return;
    }
    if (event->type == MEMRT__EVENT_RESIZE) {
        log_resize(event);
        return;
    }
    bool is_new = event->type == MEMRT__EVENT_ALLOCATE;
    if (is_new) {
        memrt__flags_set_relaxed(&event->mi->flags, MEMRT__FLAG_LOGGED);
    }
    if (!memrt__log_take(event->mi, &logged)) {
        return;
    }
    if (is_new) {
        memrt__log_count(&logged, "allocate", 0, 1);
    } else {
        write_line(&logged, "free", "");
    }
}
