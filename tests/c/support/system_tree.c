#include "support/system_tree.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/os/linux/control_group.h"
#include "support/suite.h"

static char root[64];

static void create_folders(char *path)
{
    for (char *at = strchr(path + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
}

void system_tree_write(const char *name, const char *text)
{
    char path[2048];
    snprintf(path, sizeof(path), "%s%s", root, name);
    create_folders(path);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL && fputs(text, file) >= 0);
    fclose(file);
}

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)type;
    (void)where;
    return remove(path);
}

void system_tree_begin(void)
{
    strcpy(root, "/tmp/memrt-system-XXXXXX");
    REQUIRE(mkdtemp(root) != NULL);
    memrt__control_group_root = root;
}

void system_tree_end(void)
{
    memrt__control_group_root = "";
    REQUIRE(nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0);
}
