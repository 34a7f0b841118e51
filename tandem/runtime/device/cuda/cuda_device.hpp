// tandem/runtime/device/cuda/cuda_device.hpp: a card as the device of a worker.
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

/// NVIDIA's libraries besides the driver, for all cards.
struct Libraries {
  /// From `folder`, as `Library` has it, for a driver of CUDA `driver_version`, as `files_for_driver` has it.
  Libraries(const std::string& folder, int driver_version)
      : compiler(folder, driver_version),
        blas(MathLibrary::blas(), folder, driver_version),
        solver(MathLibrary::solver(), folder, driver_version) {}
  Compiler compiler;
  MathLibrary blas;
  MathLibrary solver;
};

/// Each of the device's lanes has a stream, to which the kernels of its tasks are posted, so that small kernels of several lanes run beside
/// each other. With graphs, what tasks behind others launch is held until `flush`, if it is kernels from source alone.
class CudaDevice final : public Device {
 public:
  /// `graphs`: what tasks behind others post goes to the driver as graphs, where it comes again.
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
  static constexpr unsigned kBatch = 8;  ///< tasks of a graph, at most
  struct Report {
    unsigned place = 0;
    Status status = kSuccess;
    std::int64_t took_ns = 0;
    std::exception_ptr thrown = nullptr;  ///< by what the task has given to `read_int`
  };
  /// A kernel, and what the driver says of it.
  struct Kernel {
    std::string name;
    ModuleHandle module = nullptr;
    Function function = nullptr;
    std::vector<std::size_t> parameter_bytes = {};
    bool knows_parameters = false;   ///< older drivers do not say them
    unsigned most_threads = 0;       ///< of a block, for the registers that it takes
    unsigned static_shared = 0;      ///< bytes of shared memory of a block that the source declares
    unsigned allowed_shared = 0;     ///< dynamic ones with which the driver launches it
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
  /// By name, options and text; the worker's.
  std::map<std::tuple<std::string, std::string, std::string>, Kernel, std::less<>> kernels_;
  KeptSources<CudaSource, Kernel> kept_;  ///< in `kernels_`; the worker's

  std::mutex mutex_;
  std::vector<Report> reports_;  ///< under the mutex
};

}  // namespace tandem::runtime::cuda
