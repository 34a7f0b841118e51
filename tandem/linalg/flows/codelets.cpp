// tandem/linalg/flows/codelets.cpp: the operations of codelets, for traces.
#include "tandem/linalg/flows/codelets.hpp"

#include <span>

#include "tandem/linalg/kernel_operations.hpp"

namespace tandem::linalg::internal {

void count_operations(runtime::CodeletCore& codelet, bool complex) {
  // A complex operation is about four real ones, as LAPACK counts.
  codelet.flops = [name = codelet.name, factor = complex ? 4.0 : 1.0](std::span<const runtime::Shape> data) {
    return factor * kernel_operations(name, data).value_or(0);
  };
}

}  // namespace tandem::linalg::internal
