// tandem/runtime/device/cuda/cuda_device.hpp: a CUDA device as the device of a worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tandem/runtime/device/cuda/cuda_batch.hpp"
#include "tandem/runtime/device/cuda/cuda_card.hpp"
#include "tandem/runtime/device/cuda/cuda_compiler.hpp"
#include "tandem/runtime/device/cuda/cuda_graphs.hpp"
#include "tandem/runtime/device/cuda/cuda_math.hpp"
#include "tandem/runtime/device/cuda/cuda_queue.hpp"
#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/device/kept_sources.hpp"

namespace tandem::runtime::cuda {

/// NVIDIA's libraries besides the driver, for all devices.
struct Libraries {
  /// Loads the libraries from `folder` (see `Library`) for a driver of CUDA `driver_version` (see `files_for_driver`).
  Libraries(const std::string& folder, int driver_version)
      : compiler(folder, driver_version),
        blas(MathLibrary::blas(), folder, driver_version),
        solver(MathLibrary::solver(), folder, driver_version) {}
  Compiler compiler;
  MathLibrary blas;
  MathLibrary solver;
};

/// A CUDA device. Each of its lanes has a stream, to which the kernels of its tasks are posted, so that small kernels
/// of several lanes run concurrently. With graphs, kernels from source of tasks behind others are kept until `flush`.
class CudaDevice final : public Device {
 public:
  /// `graphs`: kernels of tasks behind others go to the driver as graphs when they come again.
  CudaDevice(std::shared_ptr<Card> card, std::shared_ptr<Libraries> libraries, unsigned depth, bool graphs);
  ~CudaDevice() override;

  std::string name() const override { return card_->name(); }
  unsigned depth() const noexcept override { return static_cast<unsigned>(places_.size()); }
  void connect(base::Waker& waker) override { waker_ = &waker; }
  Launched launch(DeviceTask& task, std::int64_t now_ns) override;
  std::int64_t poll(std::int64_t now_ns, std::vector<Ended>& ended) override;
  void finish() noexcept override;
  bool runs_behind(const DeviceTask& before, const Task& task) const override;
  unsigned batch() const noexcept override { return has_graphs_ ? kBatch : 1; }
  void flush() override;

 private:
  class Place;
  static constexpr unsigned kBatch = 8;  ///< the most tasks of a graph
  struct Report {
    unsigned place = 0;
    Status status = kSuccess;
    std::int64_t took_ns = 0;
    std::exception_ptr thrown = nullptr;  ///< exception of the task's function for `read_int`
  };
  /// A kernel and its properties from the driver.
  struct Kernel {
    std::string name;
    ModuleHandle module = nullptr;
    Function function = nullptr;
    std::vector<std::size_t> parameter_bytes = {};
    bool knows_parameters = false;   ///< older drivers do not say them
    unsigned most_threads = 0;       ///< most threads of a block, given the registers that the kernel takes
    unsigned static_shared = 0;      ///< bytes of shared memory of a block that the source declares
    unsigned allowed_shared = 0;     ///< most dynamic shared memory in bytes with which the driver launches the kernel
  };

  Kernel& kernel_of(const CudaSource& source);
  void describe(Kernel& kernel) const;
  void check_arguments(const Kernel& kernel, std::span<const CudaArgument> arguments) const;
  std::optional<std::array<unsigned, 3>> blocks_of(const Kernel& kernel, const CudaRange& range) const;
  void allow_shared(Kernel& kernel, unsigned bytes) const;
  void report(Report report);

  const std::shared_ptr<Card> card_;
  const std::shared_ptr<Libraries> libraries_;
  const bool has_graphs_;
  base::Waker* waker_ = nullptr;
  std::vector<std::unique_ptr<Place>> places_;  ///< by lane
  /// Compiled kernels by name, options and text. Used by the worker's thread.
  std::map<std::tuple<std::string, std::string, std::string>, Kernel, std::less<>> kernels_;
  KeptSources<CudaSource, Kernel> kept_;  ///< kernels in `kernels_`; used by the worker's thread

  std::mutex mutex_;
  std::vector<Report> reports_;  ///< under the mutex
};

}  // namespace tandem::runtime::cuda
