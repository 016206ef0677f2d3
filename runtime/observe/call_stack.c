#include "runtime/observe/call_stack.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/os/unwind.h"

void memrt__call_stack_record(memrt__call_stack_t *stack)
{
    memset(stack, 0, sizeof(*stack));
    memrt__unwind(stack->frames, MEMRT__CALL_STACK_DEPTH);
}

static const char *get_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static int write_frame(const Dl_info *info, const void *frame, char *text, size_t length)
{
    const char *object = get_file_name(info->dli_fname);
    if (info->dli_sname != NULL) {
        return snprintf(text, length, "    %s+%#tx in %s\n", info->dli_sname,
                        (const char *)frame - (const char *)info->dli_saddr, object);
    }
    return snprintf(text, length, "    %s+%#tx\n", object,
                    (const char *)frame - (const char *)info->dli_fbase);
}

size_t memrt__call_stack_text(const memrt__call_stack_t *stack, char *text, size_t length)
{
    MEMRT__ASSERT(length != 0);
    size_t used = 0;
    size_t i = memrt__unwind_own(stack->frames, MEMRT__CALL_STACK_DEPTH); /* skip libmemrt */
    text[0] = '\0';
    for (; i < MEMRT__CALL_STACK_DEPTH && stack->frames[i] != NULL; i++) {
        Dl_info info;
        if (dladdr(stack->frames[i], &info) == 0 || info.dli_fname == NULL) {
            continue;
        }
        int wrote = write_frame(&info, stack->frames[i], text + used, length - used);
        if (wrote < 0 || (size_t)wrote >= length - used) {
            text[used] = '\0'; /* keep whole lines only */
            break;
        }
        used += (size_t)wrote;
        MEMRT__ASSERT(used < length && text[used] == '\0');
    }
    return used;
}
