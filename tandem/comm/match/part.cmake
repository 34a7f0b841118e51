# tandem/comm/match/part.cmake: matching of receives and messages.
list(APPEND TANDEM_COMM_SOURCES match/matcher.cpp match/wild_links.cpp)
list(APPEND TANDEM_COMM_TESTS match/key_table_test.cpp match/matcher_test.cpp match/matcher_random_test.cpp)
tandem_benchmark(match_bench SOURCES match/match_bench.cpp DEPENDS comm)
