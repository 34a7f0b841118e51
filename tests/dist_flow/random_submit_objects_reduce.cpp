// tests/dist_flow/random_submit_objects_reduce.cpp: tasks on objects whose first access is `reduce`.
#include "random_submit_first.hpp"

namespace tandem::dist_test {
template void submit_first<true, AccessMode::reduce>(Runtime&, const AllData<true>&, std::size_t, const Operation&);
}  // namespace tandem::dist_test
