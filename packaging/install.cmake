# packaging/install.cmake: what `make install` adds to the libraries and the command: headers, licence, CMake package.
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tandem")

# All headers, since the public ones (tandem/tandem.hpp, tandem/linalg.hpp) reach most of the others through templates.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/tandem" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*test*" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT tandem NAMESPACE tandem:: FILE tandem-targets.cmake DESTINATION "${package_folder}")
set(TANDEM_COMM_USES_PMIX FALSE)
if(pmix_FOUND)  # by tandem/comm/bootstrap
  set(TANDEM_COMM_USES_PMIX TRUE)
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/packaging/cmake/tandem-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/packaging/tandem-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/packaging/tandem-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/packaging/tandem-config.cmake" "${PROJECT_BINARY_DIR}/packaging/tandem-config-version.cmake"
        DESTINATION "${package_folder}")
