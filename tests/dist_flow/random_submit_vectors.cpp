// tests/dist_flow/random_submit_vectors.cpp: tasks on vectors.
#include "random_submit_task.hpp"

namespace tandem::dist_test {
template void submit_task<false>(Runtime&, const AllData<false>&, std::size_t, const Operation&);
}  // namespace tandem::dist_test
