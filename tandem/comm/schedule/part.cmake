# tandem/comm/schedule/part.cmake: what the next packet carries.
list(APPEND TANDEM_COMM_SOURCES
  schedule/send_queue.cpp schedule/strategy.cpp schedule/fill_packet.cpp schedule/rail_share.cpp
  schedule/port_pacer.cpp schedule/fifo.cpp schedule/aggregate.cpp schedule/priority.cpp schedule/split.cpp)
list(APPEND TANDEM_COMM_TESTS
  schedule/send_queue_test.cpp schedule/send_queue_random_test.cpp schedule/port_pacer_test.cpp
  schedule/strategy_test.cpp schedule/strategy_random_test.cpp)
tandem_benchmark(schedule_bench SOURCES schedule/schedule_bench.cpp DEPENDS comm)
