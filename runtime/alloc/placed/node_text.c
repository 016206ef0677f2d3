#include "runtime/alloc/placed/node_text.h"

#include <stdlib.h>
#include <string.h>

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

#define INTERLEAVE "interleave:"

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
    bool interleave = strncmp(text, INTERLEAVE, strlen(INTERLEAVE)) == 0;
    const char *end = read_list(interleave ? text + strlen(INTERLEAVE) : text, &out->set);
    if (end == NULL) {
        return false;
    }
    bool bind = !interleave && *end == '!';
    out->mode = interleave ? MEMRT__NODE_INTERLEAVE : bind ? MEMRT__NODE_BIND : MEMRT__NODE_PREFER;
    return end[bind] == '\0' && (out->mode != MEMRT__NODE_PREFER || has_one_node(out->set));
}
