#ifndef MEMRT_VERSION_H
#define MEMRT_VERSION_H

/// Version of the library; CMakeLists.txt and pyproject.toml read it from here.
#define MEMRT_VERSION "0.1.0"

/// Version of the binary contract (memrt_api_t and the structs it names). A different major is
/// refused by memrt_get_api(); a higher minor has more slots at the end.
#define MEMRT_ABI_MAJOR 1u
#define MEMRT_ABI_MINOR 1u

#endif
