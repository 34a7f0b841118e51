// tandem/runtime/device/cuda/cuda_device.hpp: a card as the device of a worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
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

namespace tandem::runtime::cuda {

/// NVIDIA's libraries besides the driver, for all cards.
struct Libraries {
  explicit Libraries(const std::string& folder) : compiler(folder), blas(MathLibrary::blas(), folder), solver(MathLibrary::solver(), folder) {}
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
  };
  struct Kernel {
    ModuleHandle module = nullptr;
    Function function = nullptr;
  };

  const Kernel& kernel_of(const CudaSource& source);
  void check_arguments(const CudaSource& source, Function function, std::span<const CudaArgument> arguments) const;
  void report(unsigned place, Status status, std::int64_t took_ns);

  const std::shared_ptr<Card> card_;
  const std::shared_ptr<Libraries> libraries_;
  const bool has_graphs_;
  base::Waker* waker_ = nullptr;
  std::vector<std::unique_ptr<Place>> places_;  ///< by lane
  std::map<std::tuple<std::string, std::string, std::string>, Kernel> kernels_;  ///< by text, name and options; the worker's

  std::mutex mutex_;
  std::vector<Report> reports_;  ///< under the mutex
};

}  // namespace tandem::runtime::cuda
