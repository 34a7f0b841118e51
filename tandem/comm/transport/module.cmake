# tandem/comm/transport/module.cmake: transports that programs load when they ask for them, so that others do not pay for them.
include_guard()

# tandem_comm_module(NAME SOURCES a.cpp ... LIBRARIES targets ... DEFINITIONS X=1 ...)
# Makes libtandem_comm_NAME.so of transport/NAME/module.cpp and the SOURCES (paths relative to tandem/comm), and the object
# library tandem_comm_NAME_objects of the SOURCES alone, for tests.
function(tandem_comm_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;DEFINITIONS" ${ARGN})
  add_library(tandem_comm_${name}_objects OBJECT ${arg_SOURCES})
  target_link_libraries(tandem_comm_${name}_objects PUBLIC tandem_flags tandem_comm ${arg_LIBRARIES})
  target_compile_definitions(tandem_comm_${name}_objects PUBLIC ${arg_DEFINITIONS})

  add_library(tandem_comm_${name} MODULE transport/${name}/module.cpp)
  target_link_libraries(tandem_comm_${name} PRIVATE tandem_comm_${name}_objects)
  # Only the entry is seen from outside: what the module has of base and comm is its own copy. Libraries that this copy does not
  # call are not loaded with it.
  set(symbols "${PROJECT_SOURCE_DIR}/tandem/comm/transport/module.map")
  target_link_options(tandem_comm_${name} PRIVATE "LINKER:--version-script=${symbols}" LINKER:--as-needed LINKER:-z,defs)
  set_target_properties(tandem_comm_${name} PROPERTIES
    LINK_DEPENDS "${symbols}"
    LIBRARY_OUTPUT_DIRECTORY "${TANDEM_MODULE_BUILD_FOLDER}"
    INSTALL_RPATH ""
    INSTALL_RPATH_USE_LINK_PATH ON)  # to the communication library itself, which need not be the system's
  install(TARGETS tandem_comm_${name} LIBRARY DESTINATION "${TANDEM_MODULE_FOLDER}" OPTIONAL)
endfunction()
