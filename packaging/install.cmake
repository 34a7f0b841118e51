# packaging/install.cmake: what `make install` installs: the command, the libraries, the public headers, a CMake package, files for
# pkg-config.
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tandem")

# Which headers these are is found out when they are installed.
set(public_headers tandem/tandem.hpp tandem/comm.hpp tandem/comm/sync/clock_sync.hpp tandem/trace.hpp tandem/scheduling.hpp tandem/device.hpp
    tandem/opencl.hpp tandem/cuda.hpp)
if(TANDEM_LINALG)
  list(APPEND public_headers tandem/linalg.hpp)
endif()
install(CODE "
  include(\"${PROJECT_SOURCE_DIR}/packaging/public_headers.cmake\")
  tandem_public_headers(headers \"${PROJECT_SOURCE_DIR}\" ${public_headers})
  foreach(header \${headers})
    get_filename_component(folder \"\${header}\" DIRECTORY)
    file(INSTALL \"${PROJECT_SOURCE_DIR}/\${header}\"
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/\${folder}\")
  endforeach()")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# The libraries. Those of linalg have a file of their own, so that programs that do not use them need no BLAS.
if(BUILD_SHARED_LIBS)
  set(core tandem_shared)
  set(linalg tandem_linalg_shared)
else()
  set(core ${modules})
  list(REMOVE_ITEM core linalg)
  list(TRANSFORM core PREPEND tandem_)
  set(linalg tandem_linalg)
endif()
install(TARGETS ${core} EXPORT tandem ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT tandem NAMESPACE tandem:: FILE tandem-targets.cmake DESTINATION "${package_folder}")
if(TANDEM_LINALG)
  install(TARGETS ${linalg} EXPORT tandem-linalg
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT tandem-linalg NAMESPACE tandem:: FILE tandem-linalg-targets.cmake DESTINATION "${package_folder}")
endif()

# What `make install` builds: all that is installed, and neither tests nor benchmarks.
add_custom_target(tandem_installed)
foreach(part tandem ${core} ${linalg} tandem_device_cuda tandem_device_opencl tandem_comm_ucx tandem_comm_mpi)
  if(TARGET ${part})
    add_dependencies(tandem_installed ${part})
  endif()
endforeach()

set(TANDEM_USES_PMIX ${pmix_FOUND})  # by tandem/comm/bootstrap
configure_package_config_file("${PROJECT_SOURCE_DIR}/packaging/cmake/tandem-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/packaging/tandem-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/packaging/tandem-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/packaging/tandem-config.cmake" "${PROJECT_BINARY_DIR}/packaging/tandem-config-version.cmake"
        DESTINATION "${package_folder}")

# For pkg-config. The run path leads to the transports that are loaded on demand.
set(pc_requires fmt)
# Relative to the file, so that an installed tree may be moved.
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
if(BUILD_SHARED_LIBS)
  set(pc_libraries "-ltandem")
  set(pc_linalg_libraries "-ltandem_linalg")
  set(pc_run_path "-Wl,-rpath,\${libdir}")
else()
  set(pc_libraries "")
  foreach(name api sim_rank dist runtime model comm trace clock base)
    string(APPEND pc_libraries "-ltandem_${name} ")
  endforeach()
  # hwloc is named as a library: with --static, pkg-config would add the libraries that a static hwloc needs, which few systems have.
  string(APPEND pc_libraries "-lhwloc -pthread -ldl")
  set(pc_linalg_libraries "-ltandem_linalg ${BLAS_LIBRARIES}")
  set(pc_run_path "-Wl,-rpath,\${libdir}/tandem")
  string(APPEND pc_requires " libsodium")
  if(pmix_FOUND)
    string(APPEND pc_requires " pmix")
  endif()
endif()
foreach(name tandem tandem-linalg)
  if(name STREQUAL tandem OR TANDEM_LINALG)
    configure_file("${PROJECT_SOURCE_DIR}/packaging/${name}.pc.in" "${PROJECT_BINARY_DIR}/packaging/${name}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/packaging/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  endif()
endforeach()
