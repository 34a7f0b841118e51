# tandem/comm/sync/part.cmake: one time for all ranks, and the barrier that they leave at one instant.
list(APPEND TANDEM_COMM_SOURCES
  sync/barrier_node.cpp
  sync/clock_node.cpp
  sync/clock_sync.cpp
  sync/sync_engine.cpp)
list(APPEND TANDEM_COMM_TESTS
  sync/barrier_node_test.cpp
  sync/clock_node_test.cpp
  sync/clock_sync_test.cpp
  sync/sync_engine_test.cpp)
