# What `cmake --install` puts where, and the packages that `cpack` makes of it: a .deb and a tarball for each part.
set(PACKAGE ${CMAKE_SOURCE_DIR}/tools/package)

# The pages are made by the program that they describe: not where it cannot run here, nor under a sanitizer.
if(NOT CMAKE_CROSSCOMPILING AND NOT XSPTRACE_SANITIZE)
  set(PAGES)
  foreach(verb record list top dump export analyze compare view info doctor service ctl)
    set(page ${CMAKE_BINARY_DIR}/man/xsptrace-${verb}.1)
    if(verb STREQUAL record)
      set(page ${CMAKE_BINARY_DIR}/man/xsptrace.1)
    endif()
    add_custom_command(OUTPUT ${page}.gz COMMAND xsptrace help manual ${verb} > ${page} COMMAND gzip -9nf ${page} DEPENDS xsptrace VERBATIM)
    list(APPEND PAGES ${page}.gz)
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/xspt.5.gz DEPENDS ${PACKAGE}/xspt.5
                     COMMAND gzip -9nc ${PACKAGE}/xspt.5 > ${CMAKE_BINARY_DIR}/man/xspt.5.gz VERBATIM)
  add_custom_target(manual ALL DEPENDS ${PAGES} ${CMAKE_BINARY_DIR}/man/xspt.5.gz)
  install(FILES ${PAGES} DESTINATION share/man/man1)
  install(FILES ${CMAKE_BINARY_DIR}/man/xspt.5.gz DESTINATION share/man/man5)
endif()
install(FILES ${PACKAGE}/completion/xsptrace.bash DESTINATION share/bash-completion/completions RENAME xsptrace)
install(FILES ${PACKAGE}/completion/_xsptrace DESTINATION share/zsh/vendor-completions)
install(FILES ${PACKAGE}/completion/xsptrace.fish DESTINATION share/fish/vendor_completions.d)
# Nobody starts it but who wants it.
install(FILES ${PACKAGE}/service/xsptrace.service DESTINATION lib/systemd/system)
install(FILES ${PACKAGE}/service/service.conf DESTINATION share/xsptrace)

# ---- packages --------------------------------------------------------------------
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME xsptrace)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "the xsptrace authors")
set(CPACK_PACKAGE_CONTACT "the xsptrace authors <xsptrace@lists.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME xsptrace-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz) # dpkg of Debian 12 and of Ubuntu 24.04 read it

# One a component. Each has a licence and a changelog of its own, as Debian asks.
function(xsp_package component name section summary description depends)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  string(REPLACE ";" "\n" lines "${summary};${description}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${lines}" PARENT_SCOPE)
  install(FILES ${PACKAGE}/copyright ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION share/doc/${name} COMPONENT ${component})
  if(ARGN) # what lintian says and cannot be mended
    string(JOIN "\n" lines ${ARGN})
    file(WRITE ${CMAKE_BINARY_DIR}/lintian/${name} "${lines}\n")
    install(FILES ${CMAKE_BINARY_DIR}/lintian/${name} DESTINATION share/lintian/overrides COMPONENT ${component})
  endif()
endfunction()
set(LDCONFIG "# cpack 3.25 has it called where there is any shared library" "maintscript-calls-ldconfig *")
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/changelog.gz DEPENDS ${CMAKE_SOURCE_DIR}/CHANGELOG
                   COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG > ${CMAKE_BINARY_DIR}/changelog.gz VERBATIM)
add_custom_target(changelog ALL DEPENDS ${CMAKE_BINARY_DIR}/changelog.gz)

xsp_package(xsptrace xsptrace devel "tracer of running PyTorch, XSigma and CUDA programs"
            "Shows what a running program does and where its time goes, without;restarting, recompiling or instrumenting it: operators, functions, kernels,;lines of Python, waits, samples and memory, by eBPF and uprobes."
            "" ${LDCONFIG})
set(CPACK_DEBIAN_XSPTRACE_PACKAGE_RECOMMENDS "libcurl4 | libcurl4t64, libmicrohttpd12 | libmicrohttpd12t64") # loaded when needed
file(GLOB DOCUMENTS CONFIGURE_DEPENDS docs/*.md)
install(FILES ${DOCUMENTS} DESTINATION share/doc/xsptrace)
if(TARGET xsptrace_library)
  xsp_package(library libxsptrace1 libs "library that reads captures of xsptrace"
              "Spans, samples, waits, memory and findings of a capture, in one pass,;from C, C++ and Python." "" ${LDCONFIG})
  file(WRITE ${CMAKE_BINARY_DIR}/shlibs "libxsptrace 1 libxsptrace1 (>= ${PROJECT_VERSION})\n")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PACKAGE}/triggers ${CMAKE_BINARY_DIR}/shlibs)
  xsp_package(development libxsptrace-dev libdevel "reads captures of xsptrace: development files"
              "Header, pkg-config file, and the header with which programs;name their own regions." "libxsptrace1 (= ${PROJECT_VERSION})")
  xsp_package(python python3-xsptrace python "reads captures of xsptrace from Python"
              "Spans, samples, waits and the account of a capture as rows,;or as frames of pandas." "libxsptrace1 (>= ${PROJECT_VERSION}), python3:any")
  install(FILES ${CMAKE_SOURCE_DIR}/user/library/xsptrace.py DESTINATION lib/python3/dist-packages COMPONENT python)
endif()
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
include(CPack)
