// tools/machine/blas_remedy.hpp: how `tandem doctor` and `tandem bench` react to OpenBLAS kernels of an old processor.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tandem/linalg/blas_library.hpp"
#include "tools/machine/doctor.hpp"

namespace tandem::tools {

/// A value of OPENBLAS_CORETYPE, and the result of products with it.
struct BlasRemedy {
  std::string kernels;
  linalg::BlasTrial trial;
};

/// Tries kernels by running this command again, which takes OPENBLAS_CORETYPE from its environment. Empty: the program
/// failed, since kernels may also be ones that the processor cannot run.
std::optional<linalg::BlasTrial> try_kernels(const std::string& kernels);

/// The first of wider_kernels() with which `attempt` computes correctly and faster than `now` by a tenth. Empty: there
/// is none.
std::optional<BlasRemedy> find_remedy(
    const linalg::BlasLibrary& library, linalg::Vectors vectors, const linalg::BlasTrial& now,
    const std::function<std::optional<linalg::BlasTrial>(const std::string&)>& attempt);

/// The doctor's knowledge of the BLAS.
struct BlasState {
  linalg::BlasLibrary library;
  bool chosen = false;  ///< OPENBLAS_CORETYPE is set: that choice stays unless it computes wrongly
  linalg::BlasTrial now;
  std::optional<BlasRemedy> remedy = {};
};
/// Tries the BLAS, and a remedy if no kernels are chosen. Takes up to some seconds.
BlasState examine_blas();
Finding check_blas(const BlasState& state);

/// Sets OPENBLAS_CORETYPE for this process's children where that helps. Returns a sentence about it, else "". Not
/// thread-safe.
std::string apply_blas_remedy();

/// The output of the command that try_kernels() starts.
std::string trial_text(const linalg::BlasTrial& trial);

}  // namespace tandem::tools
