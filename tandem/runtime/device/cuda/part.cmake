# tandem/runtime/device/cuda/part.cmake: CUDA devices, as a shared library that programs load when they ask for it. It loads NVIDIA's libraries
# itself, by declarations of its own: no toolkit is needed to build it.
if(TANDEM_CUDA)
  add_library(tandem_device_cuda MODULE
    device/cuda/cuda_batch.cpp
    device/cuda/cuda_card.cpp
    device/cuda/cuda_compiler.cpp
    device/cuda/cuda_device.cpp
    device/cuda/cuda_driver.cpp
    device/cuda/cuda_graphs.cpp
    device/cuda/cuda_lane.cpp
    device/cuda/cuda_math.cpp
    device/cuda/cuda_memory.cpp
    device/cuda/library.cpp
    device/cuda/module.cpp)
  target_link_libraries(tandem_device_cuda PRIVATE tandem_flags tandem_runtime)
  target_compile_definitions(tandem_device_cuda PRIVATE "TANDEM_VERSION=\"${PROJECT_VERSION}\"")
  # Only the entry is seen from outside: what the module has of the runtime is its own copy.
  set(symbols "${CMAKE_CURRENT_LIST_DIR}/module.map")
  target_link_options(tandem_device_cuda PRIVATE "LINKER:--version-script=${symbols}" LINKER:--as-needed LINKER:-z,defs)
  set_target_properties(tandem_device_cuda PROPERTIES
    LINK_DEPENDS "${symbols}"
    LIBRARY_OUTPUT_DIRECTORY "${TANDEM_MODULE_BUILD_FOLDER}"
    INSTALL_RPATH ""
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS tandem_device_cuda LIBRARY DESTINATION "${TANDEM_MODULE_FOLDER}" OPTIONAL)
endif()
