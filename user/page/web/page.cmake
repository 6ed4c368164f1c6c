# The page (user/page/web): its packages are installed into the build folder, by its lock file, and it is bundled
# and embedded at build time. Without Node the tool is built without it.
set(WEB ${CMAKE_SOURCE_DIR}/user/page/web)
set(WEB_BUILD ${CMAKE_BINARY_DIR}/web)
set(WEB_MISSING "")
if(XSPTRACE_WEB STREQUAL "OFF")
  set(WEB_MISSING "it is turned off: -DXSPTRACE_WEB=OFF")
elseif(NOT EXISTS ${WEB}/build.mjs)
  set(WEB_MISSING "user/page/web is not there")
else()
  find_program(NODE NAMES node nodejs)
  find_program(NPM NAMES npm)
  if(NOT NODE OR NOT NPM)
    set(WEB_MISSING "node or npm was not found: install nodejs and npm (tools/install-deps does it)")
  else()
    file(SHA256 ${WEB}/package-lock.json WEB_LOCK)
    # again only where the lock file has changed
    if(NOT EXISTS ${WEB_BUILD}/installed-${WEB_LOCK})
      file(REMOVE_RECURSE ${WEB_BUILD})
      file(COPY ${WEB}/package.json ${WEB}/package-lock.json DESTINATION ${WEB_BUILD})
      execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline
                      WORKING_DIRECTORY ${WEB_BUILD} RESULT_VARIABLE WEB_RESULT ERROR_VARIABLE WEB_ERROR OUTPUT_QUIET)
      if(WEB_RESULT EQUAL 0)
        file(TOUCH ${WEB_BUILD}/installed-${WEB_LOCK})
      else()
        string(REGEX MATCH "[^\n]*" WEB_ERROR "${WEB_ERROR}")
        set(WEB_MISSING "npm ci failed (no network, and not in its cache?): ${WEB_ERROR}")
      endif()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${WEB}/package.json ${WEB}/package-lock.json)
  endif()
endif()

if(WEB_MISSING)
  if(XSPTRACE_WEB STREQUAL "ON")
    message(FATAL_ERROR "the page cannot be built: ${WEB_MISSING}")
  endif()
  message(STATUS "-o FILE.html is not built: ${WEB_MISSING}")
  set_property(SOURCE user/page/template.c APPEND PROPERTY COMPILE_DEFINITIONS XSP_WITHOUT_PAGE)
else()
  file(GLOB_RECURSE WEB_SOURCES CONFIGURE_DEPENDS ${WEB}/src/*)
  # node finds packages from where a source is: it is copied to them
  add_custom_command(
    OUTPUT ${WEB_BUILD}/page_template.inc
    COMMAND ${CMAKE_COMMAND} -E rm -rf src
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${WEB}/src src
    COMMAND ${CMAKE_COMMAND} -E copy ${WEB}/build.mjs ${WEB}/package.json .
    COMMAND ${NODE} build.mjs page.html
    COMMAND ${CMAKE_COMMAND} -DIN=page.html -DOUT=page_template.inc -P ${WEB}/page_template.cmake
    DEPENDS ${WEB}/build.mjs ${WEB}/package.json ${WEB}/package-lock.json ${WEB_SOURCES} ${WEB}/page_template.cmake
    WORKING_DIRECTORY ${WEB_BUILD} COMMENT "Page" VERBATIM)
  target_sources(xsp_core PRIVATE ${WEB_BUILD}/page_template.inc)
  set_property(SOURCE user/page/template.c APPEND PROPERTY OBJECT_DEPENDS ${WEB_BUILD}/page_template.inc)
  set_property(SOURCE user/page/template.c APPEND PROPERTY INCLUDE_DIRECTORIES ${WEB_BUILD})
endif()
