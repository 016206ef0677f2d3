# Install the debug information of the library of a wheel as a separate file, which gdb and libdw find
# by a link in the library: in the folder .debug beside the library. The library itself is stripped,
# and no process reads the file without a debugger. A cross build whose objcopy does not know the
# processor has no debug file. The file is not compressed: objcopy 2.40 leaves bytes of compressed
# sections undefined, and two builds must give the same bytes. Without sections for the loader, whose
# contents are not in the file, auditwheel can read the file.

find_program(MEMRT_OBJCOPY NAMES "${CMAKE_OBJCOPY}" objcopy DOC "objcopy, for the debug file")
if(MEMRT_OBJCOPY)
    target_compile_options(memrt_objects PRIVATE -g)
    target_link_options(memrt PRIVATE -g) # else some linkers remove debug information
    install(CODE "
        set(library \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_SONAME_FILE_NAME:memrt>\")
        set(folder \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/.debug\")
        set(debug_file \"\${folder}/$<TARGET_SONAME_FILE_NAME:memrt>.debug\")
        file(MAKE_DIRECTORY \"\${folder}\")
        execute_process(COMMAND \"${MEMRT_OBJCOPY}\" --only-keep-debug
                --remove-section=.dyn* --remove-section=.gnu.version* --remove-section=.*hash
                --remove-section=.rela* \"$<TARGET_FILE:memrt>\" \"\${debug_file}\"
            RESULT_VARIABLE failure ERROR_VARIABLE reason)
        if(failure)
            file(REMOVE_RECURSE \"\${folder}\")
            message(STATUS \"memrt: no debug file: \${reason}\")
        else()
            execute_process(COMMAND \"${MEMRT_OBJCOPY}\" --strip-debug
                \"--add-gnu-debuglink=\${debug_file}\" \"\${library}\" COMMAND_ERROR_IS_FATAL ANY)
            message(STATUS \"Installing: \${debug_file}\")
        endif()")
endif()
