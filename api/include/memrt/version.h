#ifndef MEMRT_VERSION_H
#define MEMRT_VERSION_H

/// Version of the library. CMakeLists.txt and pyproject.toml read the version from this line.
#define MEMRT_VERSION "0.1.0"

/// Version of the binary contract, for memrt_api_t and the structs in its signatures.
/// memrt_get_api() refuses a different major version. A higher minor version has more slots at the
/// end.
#define MEMRT_ABI_MAJOR 1u
#define MEMRT_ABI_MINOR 1u

#endif
