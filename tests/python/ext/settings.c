/* Print the options in force, as a user's program that may be set-uid. */

#include <stdio.h>
#include <sys/auxv.h>

#include <memrt/memrt.h>

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_option_t option;
    printf("secure %lu\n", getauxval(AT_SECURE));
    printf("checking %d\n", (api->features & MEMRT_FEATURE_CHECKING) != 0);
    for (size_t i = 0; api->option(i, &option); i++) {
        printf("%s %s\n", option.name, option.value);
    }
    for (size_t i = 0; api->option_warning(i) != NULL; i++) {
        printf("warning %s\n", api->option_warning(i));
    }
    return 0;
}
