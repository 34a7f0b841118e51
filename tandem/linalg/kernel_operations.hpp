// tandem/linalg/kernel_operations.hpp: how many operations a tile kernel takes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::linalg {

/// Additions and multiplications of one call of the kernel that `codelet` names on data of these shapes, in the order
/// of the codelet's accesses; in the element type's arithmetic, so a complex operation counts as one where LAPACK
/// counts about four. By LAPACK Working Note 41, appendix C, and for the kernels of tile QR by Buttari, Langou, Kurzak
/// and Dongarra (Parallel Computing 35, 2009), section 2.2, without the extra work of inner blocks. Empty: a codelet
/// that is not a kernel of getrf without pivoting, geqrf, gemm, herk, potrf, syrk or trsm.
std::optional<double> kernel_operations(std::string_view codelet, std::span<const runtime::Shape> data);

}  // namespace tandem::linalg
