# tandem/comm/transport/shm/part.cmake: the transport through shared memory.
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
list(APPEND TANDEM_COMM_SOURCES
  transport/shm/doorbell.cpp
  transport/shm/event_set.cpp
  transport/shm/connector.cpp
  transport/shm/connector_calls.cpp
  transport/shm/handshake.cpp
  transport/shm/receiver.cpp
  transport/shm/segment.cpp
  transport/shm/sender.cpp
  transport/shm/shm_link.cpp
  transport/shm/shm_transport.cpp
  transport/shm/unix_socket.cpp)
list(APPEND TANDEM_COMM_LIBRARIES PkgConfig::sodium)
list(APPEND TANDEM_COMM_TESTS
  transport/shm/shm_process_test.cpp
  transport/shm/shm_stranger_test.cpp
  transport/shm/shm_test.cpp)
if(TANDEM_BENCHMARKS)
  add_executable(bench_shm transport/shm/shm_bench.cpp)
  set_target_properties(bench_shm PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/benchmarks")
  target_link_libraries(bench_shm PRIVATE tandem_flags tandem_comm)
endif()
