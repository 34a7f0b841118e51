// tests/dist_flow/random_submit_vectors_commute.cpp: tasks on vectors whose first access is `commute`.
#include "random_submit_first.hpp"

namespace tandem::dist_test {
template void submit_first<false, AccessMode::commute>(Runtime&, const AllData<false>&, std::size_t, const Operation&);
}  // namespace tandem::dist_test
