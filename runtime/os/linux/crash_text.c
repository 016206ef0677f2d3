#include "runtime/os/crash_text.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

void memrt__crash_text(const char *text)
{
    size_t length = strlen(text);
    while (length != 0) {
        ssize_t wrote = write(STDERR_FILENO, text, length);
        if (wrote <= 0) {
            return;
        }
        text += wrote;
        length -= (size_t)wrote;
    }
}

static void write_digits(size_t number, unsigned base)
{
    char digits[24];
    size_t at = sizeof(digits);
    digits[--at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    memrt__crash_text(digits + at);
}

void memrt__crash_number(const char *before, size_t number, const char *after)
{
    memrt__crash_text(before);
    write_digits(number, 10);
    memrt__crash_text(after);
}

void memrt__crash_address(uintptr_t address)
{
    memrt__crash_text("0x");
    write_digits(address, 16);
}

/// Line of /proc/self/maps that is being read: "start-end access offset device inode path".
typedef struct maps_line {
    uintptr_t numbers[3]; ///< start, end, offset in the file
    unsigned fields;      ///< fields before the current byte
    char path[128];       ///< last bytes of a longer path are cut
    size_t length;
} maps_line_t;

/// Add a byte to a line.
static void read_byte(maps_line_t *line, char byte)
{
    bool is_separator = byte == ' ' || (byte == '-' && line->fields == 0);
    unsigned number = line->fields < 2 ? line->fields : 2;
    if (is_separator && line->length == 0) {
        line->fields += line->fields < 6;
        return;
    }
    if (line->fields < 2 || line->fields == 3) {
        unsigned digit = byte <= '9' ? (unsigned)(byte - '0') : (unsigned)(byte - 'a') + 10;
        line->numbers[number] = line->numbers[number] << 4 | (digit & 15);
    } else if (line->fields >= 6 && line->length < sizeof(line->path) - 1) {
        line->path[line->length++] = byte;
    }
}

/// Write the file of a complete line that contains the address. False: another line has it.
static bool write_line_with(maps_line_t *line, uintptr_t address)
{
    if (address < line->numbers[0] || address >= line->numbers[1]) {
        return false;
    }
    line->path[line->length] = '\0';
    const char *slash = strrchr(line->path, '/');
    if (line->length != 0) {
        memrt__crash_text(" ");
        memrt__crash_text(slash == NULL ? line->path : slash + 1);
        memrt__crash_text("+");
        memrt__crash_address(address - line->numbers[0] + line->numbers[2]);
    }
    return true;
}

static void write_file_of(int maps, uintptr_t address)
{
    char bytes[256];
    maps_line_t line = {.fields = 0};
    for (ssize_t got; (got = read(maps, bytes, sizeof(bytes))) > 0;) {
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] != '\n') {
                read_byte(&line, bytes[i]);
            } else if (write_line_with(&line, address)) {
                return;
            } else {
                line = (maps_line_t){.fields = 0};
            }
        }
    }
}

void memrt__crash_frame(uintptr_t address)
{
    memrt__crash_address(address);
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps >= 0) {
        write_file_of(maps, address);
        close(maps);
    }
}
