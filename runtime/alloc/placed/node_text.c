#include "runtime/alloc/placed/node_text.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/size.h"

static bool has_one_node(uint64_t set)
{
    return (set & (set - 1)) == 0;
}

/// Read numbers with commas between. Returns the end of the list, or NULL for a bad list.
static const char *read_list(const char *text, uint64_t *set)
{
    *set = 0;
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long node = strtoul(text, &end, 10);
        if (node >= MEMRT__NODES) {
            return NULL;
        }
        *set |= (uint64_t)1 << node;
        if (*end != ',') {
            return end;
        }
        text = end + 1;
    }
    return NULL;
}

/// Read weights with colons between, of the nodes from 0 on.
static bool read_weights(const char *text, memrt__nodes_t *out)
{
    for (unsigned node = 0; node < MEMRT__NODES && *text >= '0' && *text <= '9'; node++) {
        char *end;
        unsigned long weight = strtoul(text, &end, 10);
        if (weight > UINT8_MAX) {
            return false;
        }
        out->weights[node] = (uint8_t)weight;
        out->set |= weight == 0 ? 0 : (uint64_t)1 << node;
        if (*end != ':') {
            return *end == '\0' && out->set != 0;
        }
        text = end + 1;
    }
    return false;
}

#define HOME "home:"

/// Read the text behind the '!' of a set: nothing, or the home node.
static bool read_home(const char *text, memrt__nodes_t *out)
{
    if (*text == '\0') {
        return true;
    }
    uint64_t home;
    bool is_home = strncmp(text, HOME, strlen(HOME)) == 0;
    const char *end = is_home ? read_list(text + strlen(HOME), &home) : NULL;
    if (end == NULL || *end != '\0' || !has_one_node(home) || (home & ~out->set) != 0) {
        return false;
    }
    out->has_home = true;
    out->home = memrt__floor_log2(home);
    return true;
}

/// Read a set without a word before: a number, or numbers with '!' behind.
static bool read_plain(const char *text, memrt__nodes_t *out)
{
    const char *end = read_list(text, &out->set);
    if (end == NULL) {
        return false;
    }
    out->mode = *end == '!' ? MEMRT__NODE_BIND : MEMRT__NODE_PREFER;
    return *end == '!' ? read_home(end + 1, out) : *end == '\0' && has_one_node(out->set);
}

static const struct {
    const char *name;
    memrt__node_mode_t mode;
} words[] = {
    {"interleave:", MEMRT__NODE_INTERLEAVE},
    {"weighted:", MEMRT__NODE_WEIGHTED},
    {"split:", MEMRT__NODE_SPLIT},
};

bool memrt__node_text_read(const char *text, memrt__nodes_t *out)
{
    *out = (memrt__nodes_t){.mode = MEMRT__NODE_ANY};
    if (text == NULL) {
        return true;
    }
    if (strlen(text) >= MEMRT__NODE_TEXT) {
        return false;
    }
    if (strcmp(text, "local") == 0) {
        *out = (memrt__nodes_t){.mode = MEMRT__NODE_PREFER, .local = true};
        return true;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i].name);
        if (strncmp(text, words[i].name, length) == 0) {
            out->mode = words[i].mode;
            if (out->mode == MEMRT__NODE_SPLIT) {
                return read_weights(text + length, out);
            }
            const char *end = read_list(text + length, &out->set);
            return end != NULL && *end == '\0';
        }
    }
    return read_plain(text, out);
}
