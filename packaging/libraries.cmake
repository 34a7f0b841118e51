# packaging/libraries.cmake: what users link. tandem::tandem is the runtime with all below it, tandem::comm the communication
# library, tandem::linalg the linear algebra. By default they are the static libraries of the modules; with BUILD_SHARED_LIBS
# libtandem.so, which has all modules but linalg, and libtandem_linalg.so.
get_property(modules GLOBAL PROPERTY TANDEM_MODULES)
list(REMOVE_ITEM modules analysis trace_read sim)  # for the tools; sim is for tests
if(TANDEM_LINALG)
  find_package(BLAS REQUIRED)  # here too: what tandem/linalg has found is not seen outside of it
endif()

if(BUILD_SHARED_LIBS)
  # tandem_shared_library(NAME TARGET target MODULES ... PRIVATE_LIBRARIES ... LIBRARIES ...): libNAME.so of the whole static libraries
  # of MODULES. Only what the version script names is seen from outside.
  function(tandem_shared_library name)
    cmake_parse_arguments(arg "" "TARGET" "MODULES;PRIVATE_LIBRARIES;LIBRARIES" ${ARGN})
    list(TRANSFORM arg_MODULES PREPEND tandem_ OUTPUT_VARIABLE archives)
    list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
    add_library(${arg_TARGET} SHARED "${PROJECT_SOURCE_DIR}/packaging/shared.cpp")
    add_dependencies(${arg_TARGET} ${archives})
    target_link_options(${arg_TARGET} PRIVATE LINKER:--whole-archive ${files} LINKER:--no-whole-archive)
    target_link_libraries(${arg_TARGET} PRIVATE tandem_flags ${arg_PRIVATE_LIBRARIES} PUBLIC ${arg_LIBRARIES})
    set(symbols "${PROJECT_SOURCE_DIR}/packaging/${name}.map")
    target_link_options(${arg_TARGET} PRIVATE "LINKER:--version-script=${symbols}" LINKER:-z,defs LINKER:--as-needed)
    set_target_properties(${arg_TARGET} PROPERTIES
      OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
      LINK_DEPENDS "${symbols};${files}" INSTALL_RPATH "$ORIGIN;$ORIGIN/tandem" BUILD_RPATH "${TANDEM_MODULE_BUILD_FOLDER}"
      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
    target_compile_features(${arg_TARGET} INTERFACE cxx_std_20)
    target_include_directories(${arg_TARGET} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endfunction()

  set(below_linalg ${modules})
  list(REMOVE_ITEM below_linalg linalg)
  list(TRANSFORM below_linalg PREPEND tandem_ OUTPUT_VARIABLE with_their_libraries)
  tandem_shared_library(tandem TARGET tandem_shared MODULES ${below_linalg} PRIVATE_LIBRARIES $<BUILD_INTERFACE:${with_their_libraries}>
                        LIBRARIES fmt::fmt Threads::Threads)
  set_target_properties(tandem_shared PROPERTIES EXPORT_NAME tandem)
  foreach(name tandem api comm)
    add_library(tandem::${name} ALIAS tandem_shared)
  endforeach()
  if(TANDEM_LINALG)
    tandem_shared_library(tandem_linalg TARGET tandem_linalg_shared MODULES linalg
                          PRIVATE_LIBRARIES BLAS::BLAS ${CMAKE_DL_LIBS} LIBRARIES tandem_shared)
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
