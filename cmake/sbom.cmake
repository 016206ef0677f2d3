# List the third-party code of the wheel, compiled into the libraries or in report pages, in CycloneDX format. Installers keep
# the file in the wheel's metadata, where PEP 770 puts it. Without date and serial number, two builds
# give the same bytes.

# Append a component to a list; the version is empty where a header states none.
function(memrt_sbom_component variable name version license reference)
    if(version)
        set(version "\n      \"version\": \"${version}\",")
    endif()
    set(component "    {
      \"type\": \"library\",
      \"bom-ref\": \"${name}\",
      \"name\": \"${name}\",${version}
      \"licenses\": [{\"license\": {\"id\": \"${license}\"}}],
      \"externalReferences\": [{\"type\": \"website\", \"url\": \"${reference}\"}]
    }")
    list(APPEND ${variable} "${component}")
    set(${variable} "${${variable}}" PARENT_SCOPE)
endfunction()

# Set a variable to the version in a header, from macros such as DLPACK_MAJOR_VERSION.
function(memrt_header_version variable header)
    file(READ "${header}" text)
    set(numbers "")
    foreach(macro IN LISTS ARGN)
        string(REGEX MATCH "#define ${macro} +([0-9]+)" _ "${text}")
        list(APPEND numbers "${CMAKE_MATCH_1}")
    endforeach()
    list(JOIN numbers "." version)
    set(${variable} "${version}" PARENT_SCOPE)
endfunction()

set(components "")
memrt_header_version(version "${PROJECT_SOURCE_DIR}/api/include/memrt/dlpack/dlpack.h"
    DLPACK_MAJOR_VERSION DLPACK_MINOR_VERSION)
memrt_sbom_component(components dlpack "${version}" Apache-2.0 "https://github.com/dmlc/dlpack")
if(NOT memrt_c11_atomics)
    memrt_header_version(version "${MEMRT_ATOMIC_OPS_INCLUDE_DIR}/atomic_ops/ao_version.h"
        AO_VERSION_MAJOR AO_VERSION_MINOR AO_VERSION_MICRO)
    memrt_sbom_component(components libatomic_ops "${version}" MIT
        "https://github.com/ivmai/libatomic_ops")
endif()
if(memrt_probes)
    memrt_sbom_component(components sys-sdt.h "" CC0-1.0 "https://sourceware.org/systemtap/")
endif()
if(memrt_valgrind)
    memrt_sbom_component(components memcheck.h "" bzip2-1.0.6 "https://valgrind.org/")
endif()
file(READ "${PROJECT_SOURCE_DIR}/bindings/memrt/_profile/vendor/LICENSE" text LIMIT 100)
string(REGEX MATCH "uPlot ([0-9.]+)," _ "${text}")
memrt_sbom_component(components uPlot "${CMAKE_MATCH_1}" MIT "https://github.com/leeoniya/uPlot")
list(JOIN components ",\n" memrt_sbom_components)
configure_file(cmake/memrt.cdx.json.in memrt.cdx.json @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/memrt.cdx.json" DESTINATION "${SKBUILD_METADATA_DIR}/sboms")
