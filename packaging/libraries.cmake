# packaging/libraries.cmake: what users link. tandem::tandem is the runtime with all below it, tandem::comm the communication
# library, tandem::linalg the linear algebra. By default they are the static libraries of the modules; with BUILD_SHARED_LIBS
# libtandem.so, which has all modules but linalg, and libtandem_linalg.so.
get_property(modules GLOBAL PROPERTY TANDEM_MODULES)
list(REMOVE_ITEM modules trace_read)  # for the tools

if(BUILD_SHARED_LIBS)
  # tandem_shared_library(NAME MODULES ... LIBRARIES ...): libNAME.so of whole static libraries. Only what the version script names
  # is seen from outside.
  function(tandem_shared_library name)
    cmake_parse_arguments(arg "" "TARGET" "MODULES;LIBRARIES" ${ARGN})
    add_library(${arg_TARGET} SHARED "${PROJECT_SOURCE_DIR}/packaging/shared.cpp")
    list(TRANSFORM arg_MODULES PREPEND tandem_ OUTPUT_VARIABLE archives)
    list(JOIN archives "," whole)
    target_link_libraries(${arg_TARGET} PRIVATE tandem_flags "$<LINK_LIBRARY:WHOLE_ARCHIVE,${whole}>" PUBLIC ${arg_LIBRARIES})
    set(symbols "${PROJECT_SOURCE_DIR}/packaging/${name}.map")
    target_link_options(${arg_TARGET} PRIVATE "LINKER:--version-script=${symbols}" LINKER:-z,defs LINKER:--as-needed)
    set_target_properties(${arg_TARGET} PROPERTIES
      OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
      LINK_DEPENDS "${symbols}" INSTALL_RPATH "$ORIGIN;$ORIGIN/tandem" BUILD_RPATH "${TANDEM_MODULE_BUILD_FOLDER}"
      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
    target_compile_features(${arg_TARGET} INTERFACE cxx_std_20)
    target_include_directories(${arg_TARGET} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endfunction()

  set(below_linalg ${modules})
  list(REMOVE_ITEM below_linalg linalg)
  tandem_shared_library(tandem TARGET tandem_shared MODULES ${below_linalg} LIBRARIES fmt::fmt Threads::Threads)
  set_target_properties(tandem_shared PROPERTIES EXPORT_NAME tandem)
  foreach(name tandem api comm)
    add_library(tandem::${name} ALIAS tandem_shared)
  endforeach()
  if(TANDEM_LINALG)
    tandem_shared_library(tandem_linalg TARGET tandem_linalg_shared MODULES linalg LIBRARIES tandem_shared)
    set_target_properties(tandem_linalg_shared PROPERTIES EXPORT_NAME linalg)
    add_library(tandem::linalg ALIAS tandem_linalg_shared)
  endif()
else()
  foreach(name ${modules})
    set_target_properties(tandem_${name} PROPERTIES EXPORT_NAME ${name})
    add_library(tandem::${name} ALIAS tandem_${name})
  endforeach()
  add_library(tandem::tandem ALIAS tandem_api)
endif()
