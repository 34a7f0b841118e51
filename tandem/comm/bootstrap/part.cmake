# tandem/comm/bootstrap/part.cmake: how ranks find each other. PMIx is optional: without it, starting under mpirun is refused.
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
if(TANDEM_PMIX)
  pkg_check_modules(pmix QUIET IMPORTED_TARGET pmix)
endif()
list(APPEND TANDEM_COMM_SOURCES
  bootstrap/address_race.cpp
  bootstrap/card.cpp
  bootstrap/card_directory.cpp
  bootstrap/connecting.cpp
  bootstrap/host_address.cpp
  bootstrap/job_roll.cpp
  bootstrap/join.cpp
  bootstrap/master_job.cpp
  bootstrap/process_sight.cpp
  bootstrap/proof.cpp
  bootstrap/rendezvous_client.cpp
  bootstrap/rendezvous_server.cpp
  bootstrap/rendezvous_wire.cpp
  bootstrap/secret.cpp
  bootstrap/secret_descriptor.cpp
  bootstrap/socket.cpp
  bootstrap/thread_job.cpp
  bootstrap/variables.cpp)
list(APPEND TANDEM_COMM_LIBRARIES PkgConfig::sodium)
if(pmix_FOUND)
  list(APPEND TANDEM_COMM_SOURCES bootstrap/pmix_job.cpp bootstrap/pmix_presence.cpp)
  list(APPEND TANDEM_COMM_LIBRARIES PkgConfig::pmix)
else()
  list(APPEND TANDEM_COMM_SOURCES bootstrap/pmix_job_absent.cpp)
endif()
set_source_files_properties(bootstrap/rendezvous_wire.cpp PROPERTIES
                            COMPILE_DEFINITIONS "TANDEM_VERSION=\"${PROJECT_VERSION}\"")
if(TANDEM_TESTS)
  list(APPEND TANDEM_COMM_TESTS
    bootstrap/address_race_test.cpp
    bootstrap/card_test.cpp
    bootstrap/job_roll_test.cpp
    bootstrap/join_test.cpp
    bootstrap/process_sight_test.cpp
    bootstrap/proof_test.cpp
    bootstrap/rendezvous_test.cpp
    bootstrap/secret_test.cpp
    bootstrap/socket_test.cpp
    bootstrap/thread_job_test.cpp)
  # A rank that only joins: started by the tests of `tandem run`, and by mpirun.
  add_executable(join_probe bootstrap/join_probe.cpp)
  set_target_properties(join_probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(join_probe PRIVATE tandem_flags tandem_comm)
  add_test(NAME comm.join COMMAND "${CMAKE_CURRENT_LIST_DIR}/join_test.sh" "$<TARGET_FILE:join_probe>")
  set_tests_properties(comm.join PROPERTIES TIMEOUT ${tandem_test_seconds})
endif()
