// tests/dist_flow/random_submit_vectors_write.cpp: tasks on vectors whose first access is `write`.
#include "random_submit_first.hpp"

namespace tandem::dist_test {
template void submit_first<false, AccessMode::write>(Runtime&, const AllData<false>&, std::size_t, const Operation&);
}  // namespace tandem::dist_test
