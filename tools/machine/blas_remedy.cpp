// tools/machine/blas_remedy.cpp: tries kernels of OpenBLAS in a process of its own, since a process chooses them once.
#include "tools/machine/blas_remedy.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "tandem/base/blas_threads.hpp"
#include "tools/subprocess.hpp"

namespace tandem::tools {
namespace {

constexpr const char* variable = "OPENBLAS_CORETYPE";
constexpr double worth_setting = 1.1;  ///< times as fast

}  // namespace

std::string trial_text(const linalg::BlasTrial& trial) {
  return fmt::format("{:.3f} {}\n", trial.gflops, trial.right ? "right" : "wrong");
}

std::optional<linalg::BlasTrial> try_kernels(const std::string& kernels) {
  const auto ran = run_program(
      {.file = "/proc/self/exe", .arguments = {"doctor", "--try-blas"}, .environment = {{variable, kernels}}},
      std::chrono::seconds(30));
  char result[8] = {};
  linalg::BlasTrial trial;
  if (!ran.ok() || std::sscanf(ran.value().output.c_str(), "%lf %7s", &trial.gflops, result) != 2) return std::nullopt;
  trial.right = std::string(result) == "right";
  return trial;
}

std::optional<BlasRemedy> find_remedy(
    const linalg::BlasLibrary& library, linalg::Vectors vectors, const linalg::BlasTrial& now,
    const std::function<std::optional<linalg::BlasTrial>(const std::string&)>& attempt) {
  for (const std::string& kernels : linalg::wider_kernels(library.kernels, vectors)) {
    const auto trial = attempt(kernels);
    if (trial && trial->right && (!now.right || trial->gflops > worth_setting * now.gflops))
      return BlasRemedy{kernels, *trial};
  }
  return std::nullopt;
}

BlasState examine_blas() {
  base::restrict_blas_threads();
  BlasState state{linalg::blas_library(), std::getenv(variable) != nullptr, linalg::try_blas()};
  if (!state.chosen) state.remedy = find_remedy(state.library, linalg::processor_vectors(), state.now, try_kernels);
  return state;
}

Finding check_blas(const BlasState& state) {
  const std::string library =
      state.library.version.empty() ? "a BLAS that does not say its name" : state.library.version;
  const std::string kernels =
      state.library.kernels.empty() ? "" : fmt::format(" with kernels for {}", state.library.kernels);
  const std::string found = fmt::format("{}{}{}: {:.1f} GFlop/s on one core", library, kernels,
                                        state.chosen ? ", as OPENBLAS_CORETYPE says" : "", state.now.gflops);
  if (!state.now.right)
    return {"BLAS", Verdict::wrong, found + ", and wrong results",
            state.chosen ? "unset OPENBLAS_CORETYPE, or use a newer BLAS" : "use a newer BLAS"};
  if (!state.remedy) return {"BLAS", Verdict::right, found + ", results right"};
  const bool much = state.remedy->trial.gflops > 2 * state.now.gflops;
  return {"BLAS", much ? Verdict::wrong : Verdict::advice,
          fmt::format("{}; {:.1f}, and right results, with OPENBLAS_CORETYPE={}", found, state.remedy->trial.gflops,
                      state.remedy->kernels),
          fmt::format("export OPENBLAS_CORETYPE={}, or use a newer BLAS", state.remedy->kernels)};
}

std::string apply_blas_remedy() {
  if (linalg::blas_advice().empty()) return "";
  const BlasState state = examine_blas();
  if (!state.remedy) return "";
  setenv(variable, state.remedy->kernels.c_str(), 1);
  return fmt::format("{} computes with kernels for a {}: all programs, Tandem's and its peers', run with {}={}",
                     state.library.version, state.library.kernels, variable, state.remedy->kernels);
}

}  // namespace tandem::tools
