# tandem/comm/mcast/part.cmake: trees, routes and costs of broadcasts, all pure.
list(APPEND TANDEM_COMM_SOURCES mcast/cost.cpp mcast/one_port.cpp mcast/port_rate.cpp mcast/route.cpp mcast/tree.cpp)
list(APPEND TANDEM_COMM_TESTS mcast/cost_test.cpp mcast/one_port_test.cpp mcast/port_rate_test.cpp mcast/route_test.cpp
     mcast/tree_test.cpp)
tandem_benchmark(mcast_bench SOURCES mcast/mcast_bench.cpp DEPENDS comm)
