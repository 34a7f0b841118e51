# tandem/runtime/device/opencl/part.cmake: OpenCL devices, as a shared library that programs load when they ask for it.
if(TANDEM_OPENCL)
  pkg_check_modules(opencl QUIET IMPORTED_TARGET OpenCL)
endif()
if(opencl_FOUND)
  add_library(tandem_device_opencl MODULE
    device/opencl/module.cpp
    device/opencl/opencl_card.cpp
    device/opencl/opencl_device.cpp
    device/opencl/opencl_memory.cpp)
  target_link_libraries(tandem_device_opencl PRIVATE tandem_flags tandem_runtime PkgConfig::opencl)
  target_compile_definitions(tandem_device_opencl PRIVATE "TANDEM_VERSION=\"${PROJECT_VERSION}\"")
  # Only the entry is seen from outside: what the module has of the runtime is its own copy.
  set(symbols "${CMAKE_CURRENT_LIST_DIR}/module.map")
  target_link_options(tandem_device_opencl PRIVATE "LINKER:--version-script=${symbols}" LINKER:--as-needed LINKER:-z,defs)
  set_target_properties(tandem_device_opencl PROPERTIES
    LINK_DEPENDS "${symbols}"
    LIBRARY_OUTPUT_DIRECTORY "${TANDEM_MODULE_BUILD_FOLDER}"
    INSTALL_RPATH ""
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS tandem_device_opencl LIBRARY DESTINATION "${TANDEM_MODULE_FOLDER}" OPTIONAL)
elseif(TANDEM_OPENCL)
  message(STATUS "runtime: no OpenCL (ocl-icd-opencl-dev): its devices are left out")
endif()
