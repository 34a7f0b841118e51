// tools/blas_remedy.hpp: what `tandem doctor` and `tandem bench` do where OpenBLAS computes with kernels of an old processor.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tandem/linalg/blas_library.hpp"
#include "tools/doctor.hpp"

namespace tandem::tools {

/// A value of OPENBLAS_CORETYPE, and what products did with it.
struct BlasRemedy {
  std::string kernels;
  linalg::BlasTrial trial;
};

/// Tries kernels by running this command again, which takes OPENBLAS_CORETYPE from its environment. Nothing: the program did not end well,
/// since kernels may also be ones that the processor cannot run.
std::optional<linalg::BlasTrial> try_kernels(const std::string& kernels);

/// The first of wider_kernels() with which `attempt` computes rightly and faster than `now` by a tenth. Nothing where none does.
std::optional<BlasRemedy> find_remedy(const linalg::BlasLibrary& library, linalg::Vectors vectors, const linalg::BlasTrial& now,
                                      const std::function<std::optional<linalg::BlasTrial>(const std::string&)>& attempt);

/// What the doctor knows of the BLAS.
struct BlasState {
  linalg::BlasLibrary library;
  bool chosen = false;  ///< OPENBLAS_CORETYPE is set: that choice stays unless it computes wrongly
  linalg::BlasTrial now;
  std::optional<BlasRemedy> remedy = {};
};
/// Tries the BLAS, and a remedy if nobody has chosen kernels. Takes up to some seconds.
BlasState examine_blas();
Finding check_blas(const BlasState& state);

/// Sets OPENBLAS_CORETYPE for this process's children where that helps. Returns the sentence that says so, else "". Not thread-safe.
std::string apply_blas_remedy();

/// What the command that try_kernels() starts prints.
std::string trial_text(const linalg::BlasTrial& trial);

}  // namespace tandem::tools
