/// Run random sequences of table calls on memrt and on a model. After each call, statistics,
/// reference counts, sizes, names and contents must match the model. A failed call must change
/// nothing.
///
/// No library has the model: libFuzzer makes the sequences, and Hypothesis calls Python functions
/// only.

#include <string.h>

#include <memrt/memrt.h>

#include "support/input.h"
#include "conformance/pattern.h"

#define ITEMS 12
#define POLICIES 3
#define SIZE_LARGE ((size_t)3 << 20)

/// The model's state of a MemInfo or block.
typedef struct item {
    int kind;            ///< a memrt_kind_t, or 0 for an empty item
    memrt_meminfo_t *mi; ///< NULL for a block without a reference to its MemInfo
    void *data;          ///< NULL only for a resizable MemInfo without data
    size_t size;
    size_t refs;   ///< references to `mi` taken by the target
    bool owned;    ///< the target owns the block by its data pointer
    bool counted;  ///< the statistics count the item as a MemInfo
    bool listed;   ///< the live set certainly has the item
    bool observed; ///< a free of the data calls the observer
    bool readonly; ///< read-only since creation
    int policy;    ///< index in `policies`, -1 for the default policy, -2 for a released policy
    unsigned seed; ///< seed of the pattern in the data
    size_t align;  ///< minimum alignment of the data
    char name[MEMRT_NAME_MAX + 1];
} item_t;

static const memrt_api_t *api;
static item_t items[ITEMS];
static memrt_policy_t *policies[POLICIES];
static memrt_stats_t expected; ///< expected process statistics, except peak, cached and reserved
static size_t dtor_calls, observed_frees, expected_dtor_calls, expected_observed_frees;
static unsigned seeds;
static size_t latest; ///< index of the item chosen last
static bool refusing; ///< fault injection is on, so a call may fail

/* --- The model. --- */

static void ignore_resize(void *old_data, void *new_data, size_t new_size)
{
    (void)old_data, (void)new_data, (void)new_size;
}

static void count_observed_free(void *data)
{
    (void)data;
    observed_frees++;
}

static const memrt_observer_t observer = {sizeof(observer), ignore_resize, count_observed_free,
                                          NULL};

static memrt_stats_t stats_of(const memrt_policy_t *policy)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    HOLDS(api->stats_read(policy, &stats) == MEMRT_OK);
    return stats;
}

/// Accept the current count of failures. A failed request changes only `failed`, by any amount.
static void accept_failed_count(void)
{
    uint64_t failed = stats_of(NULL).failed;
    HOLDS(refusing && failed >= expected.failed);
    expected.failed = failed;
}

static bool refused(bool it_is)
{
    if (it_is) {
        accept_failed_count();
    }
    return it_is;
}

static void check_stats(void)
{
    memrt_stats_t stats = stats_of(NULL);
    HOLDS(stats.alloc == expected.alloc && stats.free == expected.free);
    HOLDS(stats.mi_alloc == expected.mi_alloc && stats.mi_free == expected.mi_free);
    HOLDS(stats.realloc == expected.realloc);
    HOLDS(stats.live == expected.live && stats.total == expected.total);
    HOLDS(stats.adopted == expected.adopted);
    HOLDS(stats.live <= stats.peak && stats.live <= stats.reserved);
    HOLDS(refusing || stats.failed == expected.failed);
    HOLDS(dtor_calls == expected_dtor_calls && observed_frees == expected_observed_frees);
}

static memrt_policy_t *policy_of(const item_t *item)
{
    return item->policy < 0 ? api->policy_default() : policies[item->policy];
}

static void check_meminfo(const item_t *item)
{
    char name[MEMRT_NAME_MAX + 1], line[512], count[40];
    HOLDS(api->refcount(item->mi) == item->refs + item->owned);
    HOLDS(api->size(item->mi) == item->size && api->get_data(item->mi) == item->data);
    HOLDS(!api->readonly(item->mi) == !item->readonly);
    HOLDS(item->policy == -2 || api->policy_of(item->mi) == policy_of(item));
    api->get_name(item->mi, name);
    HOLDS(strcmp(name, item->name) == 0);
    snprintf(count, sizeof(count), "refcount %zu,", item->refs + item->owned);
    HOLDS(api->dump(item->mi, line, sizeof(line)) < sizeof(line));
    HOLDS(strstr(line, count) != NULL);
}

static void check(const item_t *item)
{
    if (item->kind == 0) {
        return;
    }
    HOLDS(((uintptr_t)item->data & (item->align - 1)) == 0);
    HOLDS(pattern_holds(item->data, item->size, item->seed));
    if (item->mi != NULL) {
        check_meminfo(item);
    }
}

/// Check that the live bytes of every policy equal the sum of its live items.
static void check_accounts(void)
{
    for (int p = -1; p < POLICIES; p++) {
        uint64_t live = 0;
        for (size_t i = 0; i < ITEMS; i++) {
            bool counts = items[i].kind != 0 && items[i].kind != MEMRT_KIND_ADOPTED;
            live += counts && items[i].policy == p ? items[i].size : 0;
        }
        if (p < 0 || policies[p] != NULL) {
            HOLDS(stats_of(p < 0 ? api->policy_default() : policies[p]).live == live);
        }
    }
}

static void fill(item_t *item, void *data, size_t size)
{
    item->data = data;
    item->size = size;
    item->seed = ++seeds;
    pattern_write(data, size, item->seed);
}

static void count_allocation(const item_t *item, size_t blocks)
{
    bool adopted = item->kind == MEMRT_KIND_ADOPTED;
    expected.alloc += blocks;
    expected.mi_alloc += item->counted;
    expected.live += adopted ? 0 : item->size;
    expected.total += adopted ? 0 : item->size;
    expected.adopted += adopted ? item->size : 0;
}

static void count_promotion(item_t *item)
{
    expected.mi_alloc += !item->counted;
    item->counted = true;
}

/// Update the model after a release. The caller has already removed the reference. The last release
/// destroys the item.
static void record_release(item_t *item)
{
    if (item->refs != 0 || item->owned) {
        return;
    }
    bool adopted = item->kind == MEMRT_KIND_ADOPTED, resizable = item->kind == MEMRT_KIND_RESIZABLE;
    expected.free += resizable && item->data != NULL ? 2 : 1;
    expected.mi_free += item->counted;
    expected.live -= adopted ? 0 : item->size;
    expected.adopted -= adopted ? item->size : 0;
    expected_dtor_calls += item->kind != MEMRT_KIND_BLOCK;
    expected_observed_frees += item->observed;
    *item = (item_t){0};
}

/// Destructor of all items except blocks: check contents, count the call, free adopted data.
static void count_dtor_call(void *data, size_t size, void *dtor_info)
{
    const item_t *item = dtor_info;
    HOLDS(data == item->data && size == item->size);
    HOLDS(pattern_holds(data, size, item->seed));
    dtor_calls++;
    if (item->kind == MEMRT_KIND_ADOPTED) {
        free(data);
    }
}

/* --- Choices by input bytes. --- */

/// Return a size, small in most cases, because large blocks take long to fill and verify.
static size_t choose_size(input_t *input)
{
    size_t number = (size_t)input_number(input, 2), scale = number & 31, rest = number >> 5;
    return scale < 24 ? rest % 512 : scale < 31 ? rest * 16 : rest * 2048 % SIZE_LARGE;
}

/// Return the item at a chosen index, or the next non-empty item. Half of the choices repeat the
/// item of the previous call, so that consecutive calls often use the same item.
static item_t *choose_item(input_t *input)
{
    size_t byte = input_byte(input), place = byte < 128 ? latest : byte % ITEMS, tries = 0;
    while (items[place].kind == 0 && ++tries < ITEMS) {
        place = (place + 1) % ITEMS;
    }
    latest = place;
    return &items[place];
}

/// Return an empty item, or NULL if all items are in use.
static item_t *free_item(void)
{
    for (size_t i = 0; i < ITEMS; i++) {
        if (items[i].kind == 0) {
            latest = i;
            return &items[i];
        }
    }
    return NULL;
}

/// Return the index of an existing policy in `policies`, or -1.
static int choose_policy(input_t *input)
{
    int place = input_byte(input) % (POLICIES + 1) - 1;
    return place >= 0 && policies[place] == NULL ? -1 : place;
}

static const char *choose_name(input_t *input, char room[MEMRT_NAME_MAX + 2])
{
    size_t length = input_byte(input) % 8;
    length = length == 6 ? MEMRT_NAME_MAX : length == 7 ? MEMRT_NAME_MAX + 1 : length;
    memset(room, 'n', length);
    room[length] = '\0';
    return room;
}

/// Options of a creator, and the expected item. `legal` is false for invalid options.
typedef struct choice {
    memrt_new_options_t options;
    item_t item;
    bool legal;
    char name[MEMRT_NAME_MAX + 2];
} choice_t;

static void choose_options(input_t *input, int kind, item_t *place, choice_t *choice)
{
    unsigned flags = input_byte(input);
    *choice = (choice_t){.options = {.struct_size = sizeof(memrt_new_options_t),
                                     .dtor = count_dtor_call,
                                     .dtor_info = place,
                                     .readonly = (flags & 1) != 0},
                         .item = {.kind = kind, .refs = 1, .counted = true, .align = 1},
                         .legal = true};
    choice->item.readonly = (flags & 1) != 0;
    choice->item.policy = choose_policy(input);
    choice->options.policy = choice->item.policy < 0 ? NULL : policies[choice->item.policy];
    if ((flags & 2) != 0 && kind != MEMRT_KIND_ADOPTED) {
        unsigned bits = input_byte(input) % 16;
        choice->options.alignment = bits == 15 ? 48 : (size_t)1 << bits;
        choice->item.align = bits == 15 ? 1 : (size_t)1 << bits;
        choice->legal = bits != 15;
    }
    if ((flags & 4) != 0) {
        choice->options.name = choose_name(input, choice->name);
        choice->legal = choice->legal && strlen(choice->name) <= MEMRT_NAME_MAX;
    }
    if (kind != MEMRT_KIND_ADOPTED) {
        choice->item.align = choice->item.align < 64 ? 64 : choice->item.align;
        choice->options.zeroed = (flags & 8) != 0;
    }
}

/// Check the status of a creator's call, and complete the expected item. Return false if the call
/// failed.
static bool check_creation(memrt_status_t status, choice_t *choice, memrt_meminfo_t *mi)
{
    if (!choice->legal) {
        HOLDS(status == MEMRT_EINVAL);
        return false;
    }
    if (refused(status == MEMRT_ENOMEM)) {
        return false;
    }
    HOLDS(status == MEMRT_OK);
    choice->item.mi = mi;
    choice->item.listed = api->tracking_enabled() || choice->name[0] != '\0';
    memcpy(choice->item.name, choice->name, sizeof(choice->item.name));
    return true;
}

/* --- The calls. --- */

static void do_meminfo_new(input_t *input)
{
    item_t *place = free_item();
    memrt_meminfo_t *mi = NULL;
    choice_t choice;
    if (place == NULL) {
        return;
    }
    choose_options(input, MEMRT_KIND_INLINE, place, &choice);
    size_t size = choose_size(input);
    if (check_creation(api->meminfo_new(size, &choice.options, &mi), &choice, mi)) {
        HOLDS(!choice.options.zeroed || pattern_is_zero(api->get_data(mi), size));
        *place = choice.item;
        fill(place, api->get_data(mi), size);
        count_allocation(place, 1);
    }
}

static void do_adopt(input_t *input)
{
    item_t *place = free_item();
    memrt_meminfo_t *mi = NULL;
    choice_t choice;
    if (place == NULL) {
        return;
    }
    choose_options(input, MEMRT_KIND_ADOPTED, place, &choice);
    size_t size = choose_size(input);
    void *data = malloc(size == 0 ? 1 : size);
    if (check_creation(api->meminfo_adopt(data, size, &choice.options, &mi), &choice, mi)) {
        *place = choice.item;
        fill(place, data, size);
        count_allocation(place, 1);
    } else {
        free(data);
    }
}

static void do_resizable_new(input_t *input)
{
    item_t *place = free_item();
    memrt_meminfo_t *mi = NULL;
    choice_t choice;
    if (place == NULL) {
        return;
    }
    choose_options(input, MEMRT_KIND_RESIZABLE, place, &choice);
    size_t size = choose_size(input);
    if (check_creation(api->resizable_new(size, &choice.options, &mi), &choice, mi)) {
        HOLDS(!choice.options.zeroed || pattern_is_zero(api->get_data(mi), size));
        *place = choice.item;
        fill(place, api->get_data(mi), size);
        count_allocation(place, 2);
    }
}

static void count_resize(size_t old, size_t new)
{
    expected.realloc++;
    expected.live += new - old;
    expected.total += new > old ? new - old : 0;
}

static void do_resizable_alloc(item_t *item, size_t size)
{
    void *old = item->data, *data = api->resizable_alloc(item->mi, size);
    if (refused(data == NULL)) {
        return;
    }
    expected.alloc++;
    expected.live += size;
    expected.total += size;
    HOLDS(pattern_holds(old, item->size, item->seed));
    if (old != NULL) {
        api->resizable_free(item->mi, old);
        expected.free++;
        expected.live -= item->size;
        expected_observed_frees += item->observed;
        item->observed = false; /* the mark belonged to the old data */
    }
    fill(item, data, size);
}

static void do_resizable_realloc(item_t *item, size_t size)
{
    void *data = api->resizable_realloc(item->mi, size);
    if (refused(data == NULL)) {
        return;
    }
    HOLDS(pattern_holds(data, item->size < size ? item->size : size, item->seed));
    if (item->data == NULL) {
        expected.alloc++;
        expected.live += size;
        expected.total += size;
    } else {
        count_resize(item->size, size);
    }
    fill(item, data, size);
}

static void do_resize(input_t *input)
{
    item_t *item = choose_item(input);
    unsigned how = input_byte(input) % 8;
    size_t size = choose_size(input);
    if (item->kind != MEMRT_KIND_RESIZABLE) {
        return;
    }
    if (how == 0) {
        api->resizable_free(item->mi, item->data);
        expected.free += item->data != NULL;
        expected.live -= item->size;
        expected_observed_frees += item->observed;
        item->observed = false;
        item->data = NULL;
        item->size = 0;
    } else if (how < 3) {
        do_resizable_alloc(item, size);
    } else {
        do_resizable_realloc(item, size);
    }
}

static void take_block(item_t *place, int policy, void *data, size_t size, size_t align)
{
    *place = (item_t){.kind = MEMRT_KIND_BLOCK, .owned = true, .policy = policy, .align = align};
    place->listed = api->tracking_enabled();
    fill(place, data, size);
}

static void do_block_new(input_t *input)
{
    item_t *place = free_item();
    int policy = choose_policy(input);
    bool zeroed = input_byte(input) % 2 != 0;
    size_t size = choose_size(input);
    if (place == NULL) {
        return;
    }
    memrt_policy_t *from = policy < 0 ? NULL : policies[policy];
    void *data = zeroed ? api->block_calloc(from, 1, size) : api->block_alloc(from, size);
    if (refused(data == NULL)) {
        return;
    }
    HOLDS(!zeroed || pattern_is_zero(data, size));
    take_block(place, policy, data, size, size == 0 || size > MEMRT_TINY_MAX ? 64 : 16);
    count_allocation(place, 1);
}

/// Reallocate a block that memrt must copy: other references keep the old block. Tiny blocks with a
/// MemInfo are always copied.
static void do_copying_realloc(item_t *item, size_t size)
{
    item_t *place = free_item();
    if (place == NULL) {
        return;
    }
    void *data = api->block_realloc(NULL, item->data, size);
    if (refused(data == NULL)) {
        return;
    }
    HOLDS(data != item->data);
    HOLDS(pattern_holds(data, item->size < size ? item->size : size, item->seed));
    take_block(place, item->policy, data, size, 16);
    count_allocation(place, 1);
    item->owned = false;
    record_release(item);
}

static bool is_tiny(const item_t *item)
{
    return ((uintptr_t)item->data & 63) != 0;
}

static void do_block_realloc(input_t *input)
{
    item_t *item = choose_item(input);
    size_t size = choose_size(input);
    if (!item->owned) {
        return;
    }
    if (item->refs != 0 || (is_tiny(item) && item->counted)) {
        do_copying_realloc(item, size);
        return;
    }
    void *data = api->block_realloc(NULL, item->data, size);
    if (refused(data == NULL)) {
        return;
    }
    HOLDS(pattern_holds(data, item->size < size ? item->size : size, item->seed));
    count_resize(item->size, size);
    item->align = 16;
    item->listed = false; /* uncertain: a moved tiny block is listed only if tracking is on */
    fill(item, data, size);
}

static void do_block_free(input_t *input)
{
    item_t *item = choose_item(input);
    size_t claimed = input_byte(input);
    if (item->owned) {
        api->block_free(NULL, item->data, claimed);
        item->owned = false;
        record_release(item);
    }
}

static void do_block_meminfo(input_t *input)
{
    item_t *item = choose_item(input);
    memrt_meminfo_t *mi = NULL;
    if (!item->owned && item->kind != MEMRT_KIND_INLINE) {
        return;
    }
    if (!item->owned && api->features & MEMRT_FEATURE_CHECKING) {
        return; /* the checking table accepts only blocks here */
    }
    memrt_status_t status = api->block_meminfo(item->data, &mi);
    if (refused(status == MEMRT_ENOMEM)) {
        return;
    }
    HOLDS(status == MEMRT_OK && (item->mi == NULL || item->mi == mi));
    item->mi = mi;
    item->refs++;
    count_promotion(item);
}

static void do_acquire(input_t *input)
{
    item_t *item = choose_item(input);
    unsigned how = input_byte(input) % 3;
    if (item->refs == 0) {
        return;
    }
    if (how == 0) {
        api->acquire(item->mi);
    } else if (how == 1) {
        memrt_meminfo_acquire(item->mi);
    } else {
        HOLDS(api->try_acquire(item->mi));
    }
    item->refs++;
}

static void do_release(input_t *input)
{
    item_t *item = choose_item(input);
    bool by_table = input_byte(input) % 2 == 0;
    if (item->refs == 0) {
        return;
    }
    memrt_meminfo_t *mi = item->mi;
    if (by_table) {
        api->release(mi);
    } else {
        memrt_meminfo_release(api, mi);
    }
    item->refs--;
    if (item->refs == 0) {
        item->mi = NULL;
    }
    record_release(item);
}

static void do_set_name(input_t *input)
{
    char room[MEMRT_NAME_MAX + 2];
    item_t *item = choose_item(input);
    const char *name = choose_name(input, room);
    if (item->refs == 0) {
        return;
    }
    memrt_status_t status = api->set_name(item->mi, name);
    if (strlen(name) > MEMRT_NAME_MAX) {
        HOLDS(status == MEMRT_EINVAL);
        return;
    }
    if (status == MEMRT_ENOMEM) { /* not a block request, so `failed` does not count it */
        HOLDS(refusing);
        return;
    }
    HOLDS(status == MEMRT_OK);
    strcpy(item->name, name);
    item->listed = item->listed || name[0] != '\0';
}

static void do_find(input_t *input)
{
    item_t *item = choose_item(input);
    memrt_meminfo_t *mi = NULL;
    if (item->kind == 0) {
        return;
    }
    memrt_status_t status = api->find(item->data, &mi);
    if (status == MEMRT_ENOENT) {
        HOLDS(!item->listed || item->data == NULL);
        return;
    }
    HOLDS(status == MEMRT_OK && (item->mi == NULL || item->mi == mi));
    HOLDS(api->refcount(mi) == item->refs + item->owned + 1);
    count_promotion(item);
    api->release(mi);
}

static void do_observe(input_t *input)
{
    item_t *item = choose_item(input);
    if (item->refs != 0) {
        api->observe(item->mi);
        item->observed = item->observed || item->data != NULL;
    }
}

static void do_policy_new(input_t *input)
{
    static const char *const texts[] = {NULL, "0", "64K", "none"};
    const memrt_allocator_t *const allocators[] = {NULL, NULL, api->allocator_system(),
                                                   api->allocator_mapped()};
    int place = input_byte(input) % POLICIES;
    unsigned how = input_byte(input);
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .alignment = (how & 1) != 0 ? 256 : 0,
                                      .allocator = allocators[how >> 1 & 3],
                                      .cache_limit = texts[how >> 3 & 3]};
    if (policies[place] != NULL) {
        return;
    }
    memrt_status_t status = api->policy_new(&options, &policies[place]);
    bool legal = options.allocator == NULL || options.cache_limit == NULL;
    HOLDS(status == (legal ? MEMRT_OK : MEMRT_EINVAL) || (refusing && status == MEMRT_ENOMEM));
    if (status != MEMRT_OK) {
        HOLDS(policies[place] == NULL);
    }
}

static void release_policy(int place)
{
    if (policies[place] == NULL) {
        return;
    }
    api->policy_release(policies[place]);
    policies[place] = NULL;
    for (size_t i = 0; i < ITEMS; i++) {
        items[i].policy = items[i].policy == place ? -2 : items[i].policy;
    }
}

static void do_policy_release(input_t *input)
{
    release_policy(input_byte(input) % POLICIES);
}

static void do_tracking(input_t *input)
{
    api->tracking(input_byte(input) % 2);
}

/// Releasing cached memory changes no live buffer and no count: the model checks both afterwards.
static void do_release_unused(input_t *input)
{
    (void)input;
    api->release_unused();
}

static void do_set_option(input_t *input)
{
    static const char *const settings[][2] = {{"cache_limit", "none"}, {"cache_limit", "0"},
                                              {"cache_limit", "2M"},   {"hugepages", "off"},
                                              {"hugepages", "advise"}, {"hugepages", "large"}};
    const char *const *setting = settings[input_byte(input) % 6];
    HOLDS(api->option_set(setting[0], setting[1], NULL, 0) == MEMRT_OK);
}

/// Check that the live list has every listed item, with the attributes of the model.
static void do_live(input_t *input)
{
    memrt_live_t *list;
    size_t count, i;
    (void)input;
    memrt_status_t status = api->live(&list, &count);
    if (status == MEMRT_ENOMEM) {
        HOLDS(refusing);
        return;
    }
    HOLDS(status == MEMRT_OK);
    for (size_t place = 0; place < ITEMS; place++) {
        const item_t *item = &items[place];
        for (i = 0; i < count && list[i].data != (uintptr_t)item->data; i++) {
        }
        if (item->kind != 0 && item->data != NULL && item->listed) {
            HOLDS(i < count && list[i].size == item->size && (int)list[i].kind == item->kind);
            HOLDS(list[i].refcount == item->refs + item->owned);
            HOLDS(strcmp(list[i].name, item->name) == 0);
        }
    }
    api->live_free(list);
}

static void act(input_t *input);

/// Run the next call with fault injection.
static void do_refuse(input_t *input)
{
    unsigned how = input_byte(input);
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan),
                                 .nth = 1 + how % 4,
                                 .every = how >> 2 & 1,
                                 .this_thread_only = 1,
                                 .kinds = how >> 3};
    if (refusing) {
        return;
    }
    refusing = true;
    HOLDS(api->fail_allocations(&plan) == MEMRT_OK);
    act(input);
    HOLDS(api->fail_allocations(NULL) == MEMRT_OK);
    expected.failed = stats_of(NULL).failed;
    refusing = false;
}

static void act(input_t *input)
{
    static void (*const calls[])(input_t *) = {
        do_meminfo_new, do_adopt,         do_resizable_new,  do_resize,     do_resize,
        do_block_new,   do_block_realloc, do_block_realloc,  do_block_free, do_block_meminfo,
        do_acquire,     do_release,       do_release,        do_set_name,   do_find,
        do_observe,     do_policy_new,    do_policy_release, do_tracking,   do_release_unused,
        do_set_option,  do_live,          do_refuse};
    calls[input_byte(input) % (sizeof(calls) / sizeof(calls[0]))](input);
}

/* --- The fuzz target. --- */

static void end_item(item_t *item)
{
    if (item->owned) {
        api->block_free(NULL, item->data, 0);
        item->owned = false;
    }
    while (item->refs > 1) {
        item->refs--;
        api->release(item->mi);
    }
    if (item->refs == 1) {
        api->release(item->mi);
        item->refs = 0;
    }
    if (item->kind != 0) {
        record_release(item);
    }
}

static void end(void)
{
    for (size_t i = 0; i < ITEMS; i++) {
        check(&items[i]);
        end_item(&items[i]);
        check_stats();
    }
    for (int p = 0; p < POLICIES; p++) {
        release_policy(p);
    }
}

static void begin(void)
{
    if (api == NULL) {
        api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
        api->set_observer(&observer);
    }
    expected = stats_of(NULL);
    latest = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input_t input = {bytes, bytes + size};
    begin();
    int was = api->tracking_enabled();
    memrt_stats_t before = expected;
    for (size_t calls = 1; input_is_left(&input); calls++) {
        act(&input);
        check_stats();
        check(&items[calls % ITEMS]);
    }
    check_accounts();
    end();
    HOLDS(expected.live == before.live && expected.adopted == before.adopted);
    HOLDS(expected.alloc - expected.free == before.alloc - before.free);
    HOLDS(expected.mi_alloc - expected.mi_free == before.mi_alloc - before.mi_free);
    api->tracking(was);
    return 0;
}
