// tests/dist_flow/random_submit_objects.cpp: tasks on objects.
#include "random_submit_task.hpp"

namespace tandem::dist_test {
template void submit_task<true>(Runtime&, const AllData<true>&, std::size_t, const Operation&);
}  // namespace tandem::dist_test
