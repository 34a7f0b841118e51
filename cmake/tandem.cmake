# cmake/tandem.cmake: settings common to all targets, and the functions with which a module declares its parts.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12 OR
   CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "Tandem needs GCC 12 or Clang 16 or newer, for C++20; ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} "
                      "${CMAKE_CXX_COMPILER_VERSION}. Choose another with -D CMAKE_CXX_COMPILER=...")
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  else()  # a subproject leaves the choice to the project around it
    message(WARNING "CMAKE_BUILD_TYPE is empty, so that Tandem is built without optimisation: a task costs several times more. "
                    "Configure with -D CMAKE_BUILD_TYPE=Release, or RelWithDebInfo to debug.")
  endif()
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# Modules that programs load at run time (tandem/comm/transport/module.cmake). The loader looks for them in the run path of the
# program: here that of our own, in tandem/comm/CMakeLists.txt that of programs that use the installed package.
cmake_path(APPEND CMAKE_INSTALL_LIBDIR tandem OUTPUT_VARIABLE TANDEM_MODULE_FOLDER)
set(TANDEM_MODULE_BUILD_FOLDER "${PROJECT_BINARY_DIR}/modules")
list(APPEND CMAKE_BUILD_RPATH "${TANDEM_MODULE_BUILD_FOLDER}")
foreach(programs "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBEXECDIR}/tandem")
  file(RELATIVE_PATH modules_from_programs "${programs}" "${CMAKE_INSTALL_FULL_LIBDIR}/tandem")
  list(APPEND CMAKE_INSTALL_RPATH "$ORIGIN/${modules_from_programs}")
endforeach()

find_program(TANDEM_CCACHE ccache)
mark_as_advanced(TANDEM_CCACHE)
if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
  if(TANDEM_PRECOMPILED_HEADERS)  # as ccache's manual says of precompiled headers
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${TANDEM_CCACHE}")
  endif()
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Flags that every target of the project gets, and that users of the installed package do not.
add_library(tandem_flags INTERFACE)
target_compile_options(tandem_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(NOT TANDEM_RUNTIME)  # the linker drops what the Python extension does not call, and with it the need of hwloc
  target_compile_options(tandem_flags INTERFACE -ffunction-sections -fdata-sections)
endif()
if(TANDEM_PRECOMPILED_HEADERS AND TANDEM_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tandem_flags INTERFACE -fpch-preprocess)
endif()
if(TANDEM_SANITIZE)
  # Undefined behaviour ends the program: by default it would be a line in the output of a test that passes.
  target_compile_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE})
  if(TANDEM_SANITIZE MATCHES "undefined")
    # To look at a vtable it needs a descriptor, and says that the object is none where a test has left none.
    target_compile_options(tandem_flags INTERFACE -fno-sanitize=vptr)
  endif()
endif()

# For tests and for the command's own code, behind tandem_flags. Optimised less in a release build, they compile a fifth faster, and run for
# seconds. The address sanitizer finds null pointers, too; these checks are two thirds of what checking for undefined behaviour generates.
add_library(tandem_light INTERFACE)
target_compile_options(tandem_light INTERFACE $<$<CONFIG:Release>:-O1>)
if(TANDEM_SANITIZE MATCHES "undefined")
  target_compile_options(tandem_light INTERFACE -fno-sanitize=null,alignment,object-size)
endif()

if(TANDEM_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TANDEM_FUZZERS needs Clang, which has libFuzzer: -D CMAKE_CXX_COMPILER=clang++-16")
  endif()
  set(fuzz_flags -fsanitize=fuzzer-no-link,address,undefined)
  target_compile_options(tandem_flags INTERFACE ${fuzz_flags} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(tandem_flags INTERFACE ${fuzz_flags})
endif()

if(TANDEM_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# The extension of the Python package shall need no library but the C++ runtime.
set(TANDEM_FMT $<IF:$<BOOL:${TANDEM_RUNTIME}>,fmt::fmt,fmt::fmt-header-only>)

# What the headers of cmake/precompiled become: once for libraries and once for programs, whose code is generated differently.
if(TANDEM_PRECOMPILED_HEADERS)
  set(precompiled "${PROJECT_SOURCE_DIR}/cmake/precompiled")
  find_package(fmt REQUIRED)
  add_library(tandem_precompiled OBJECT EXCLUDE_FROM_ALL "${precompiled}/empty.cpp")
  target_link_libraries(tandem_precompiled PRIVATE tandem_flags ${TANDEM_FMT})
  target_precompile_headers(tandem_precompiled PRIVATE "${precompiled}/standard.hpp")
  add_library(tandem_precompiled_tools OBJECT EXCLUDE_FROM_ALL "${precompiled}/empty.cpp")
  target_link_libraries(tandem_precompiled_tools PRIVATE tandem_flags tandem_light ${TANDEM_FMT})
  target_include_directories(tandem_precompiled_tools PRIVATE "${PROJECT_SOURCE_DIR}")
  target_precompile_headers(tandem_precompiled_tools PRIVATE "${precompiled}/tools.hpp")
  if(TANDEM_TESTS)
    add_executable(tandem_precompiled_tests EXCLUDE_FROM_ALL "${precompiled}/empty.cpp")
    target_link_libraries(tandem_precompiled_tests PRIVATE tandem_flags tandem_light fmt::fmt GTest::gmock GTest::gtest)
    target_include_directories(tandem_precompiled_tests PRIVATE "${PROJECT_SOURCE_DIR}")
    target_precompile_headers(tandem_precompiled_tests PRIVATE "${precompiled}/tests.hpp")
  endif()
endif()

# tandem_precompiled(TARGET FROM): TARGET uses the headers that FROM compiles.
function(tandem_precompiled target from)
  if(TANDEM_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()
if(TANDEM_BENCHMARKS)
  find_package(benchmark QUIET)
endif()

# tandem_module(NAME SOURCES a.cpp ... DEPENDS other ... LIBRARIES targets ...)
# Makes the static library tandem_NAME; packaging/libraries.cmake makes of it what users link. DEPENDS names modules of the same or a lower layer.
# A module without SOURCES is a header-only one.
function(tandem_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  list(TRANSFORM arg_DEPENDS PREPEND "tandem_")
  if(arg_SOURCES)
    add_library(tandem_${name} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(tandem_${name} PRIVATE $<BUILD_INTERFACE:tandem_flags> ${arg_PRIVATE_LIBRARIES})
    tandem_precompiled(tandem_${name} tandem_precompiled)
    if(TANDEM_UNITY)
      set_target_properties(tandem_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    endif()
  else()
    add_library(tandem_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  set_target_properties(tandem_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(tandem_${name} ${scope} cxx_std_20)
  target_include_directories(tandem_${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(tandem_${name} ${scope} ${arg_DEPENDS} ${arg_LIBRARIES} Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY TANDEM_MODULES ${name})
endfunction()

# After so many seconds a test hangs. Sanitizers make programs several times slower.
set(tandem_test_seconds 120)
if(TANDEM_SANITIZE)
  set(tandem_test_seconds 480)
endif()

# tandem_test(NAME SOURCES a_test.cpp ... DEPENDS modules ... LABELS labels ...): a GoogleTest executable; each TEST is a ctest. Five sources are
# compiled as one, in half of the time: what each defines is in a namespace of its name, as tandem::cancel_test in cancel_test.cpp.
function(tandem_test name)
  if(NOT TANDEM_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LIBRARIES;LABELS" ${ARGN})
  list(TRANSFORM arg_DEPENDS PREPEND "tandem_")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${tandem_test_seconds})
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(${name} PRIVATE tandem_flags tandem_light ${arg_DEPENDS} ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  tandem_precompiled(${name} tandem_precompiled_tests)
  if(TANDEM_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

# tandem_stress(NAME COMMAND test arguments... VARIABLE variable SHARE n ENVIRONMENT a=1 b=2): a long random test, which `make check` leaves out
# and `make stress` runs. The environment variable VARIABLE says how many seeds it plays: those of `make stress SEEDS=n` divided by SHARE,
# a tenth of that under a sanitizer.
function(tandem_stress name)
  if(NOT TANDEM_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "VARIABLE;SHARE" "COMMAND;ENVIRONMENT" ${ARGN})
  if(TANDEM_SANITIZE)
    math(EXPR arg_SHARE "${arg_SHARE} * 10")
  endif()
  add_test(NAME ${name} COMMAND sh -c "${arg_VARIABLE}=$((\${STRESS_SEEDS:-10000} / ${arg_SHARE} + 1)); export ${arg_VARIABLE}; exec \"$@\"" -
                                ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS stress TIMEOUT 3600 ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# tandem_benchmark(NAME SOURCES a_bench.cpp ... DEPENDS modules ...): a Google Benchmark executable, when the library is there.
function(tandem_benchmark name)
  if(NOT TANDEM_BENCHMARKS OR NOT benchmark_FOUND)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  list(TRANSFORM arg_DEPENDS PREPEND "tandem_")
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/benchmarks")
  target_link_libraries(${name} PRIVATE tandem_flags ${arg_DEPENDS} ${arg_LIBRARIES} benchmark::benchmark_main)
endfunction()
