# tandem/comm/transport/tcp/part.cmake: the TCP transport, and the proof of connections that it uses.
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
list(APPEND TANDEM_COMM_SOURCES
  transport/connection_proof.cpp
  transport/tcp/address.cpp
  transport/tcp/frame_reader.cpp
  transport/tcp/frame_writer.cpp
  transport/tcp/splice_pipe.cpp
  transport/tcp/socket.cpp
  transport/tcp/tcp_connecting.cpp
  transport/tcp/tcp_ending.cpp
  transport/tcp/tcp_speed.cpp
  transport/tcp/tcp_splicing.cpp
  transport/tcp/tcp_transport.cpp)
list(APPEND TANDEM_COMM_LIBRARIES PkgConfig::sodium)
list(APPEND TANDEM_COMM_TESTS
  transport/connection_proof_test.cpp
  transport/tcp/address_test.cpp
  transport/tcp/splice_test.cpp
  transport/tcp/tcp_failure_test.cpp
  transport/tcp/tcp_fuzz_test.cpp
  transport/tcp/tcp_test.cpp)
tandem_benchmark(tcp_bench SOURCES transport/tcp/tcp_bench.cpp DEPENDS comm)
