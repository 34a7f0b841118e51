// tandem/runtime/device/modelled_device.hpp: the device whose tasks take a modelled time instead of computing.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/device/emulation.hpp"
#include "tandem/runtime/device/modelled_host.hpp"
#include "tandem/runtime/device/modelled_memory.hpp"

namespace tandem::runtime {

/// The device of workers under an `Emulation`: tasks end one after the other when their modelled times are over, and
/// their kernels are not called. Tasks for which the model has no time run on the real device behind this one, or at
/// once on the worker's thread.
class ModelledDevice final : public Device {
 public:
  struct Surroundings {
    ModelledHost& host;
    ModelledMemory* memory = nullptr;  ///< null: kernels share no memory
    std::int64_t sleeps_after_ns = 0;  ///< a CPU worker without tasks
    unsigned worker = 0;               ///< number of the worker
  };
  /// Makes the device of a worker of `kind`. The other objects outlive this. `behind` null: the worker's thread is the
  /// device.
  ModelledDevice(const Emulation& model, DeviceKind kind, Device* behind, const Surroundings& surroundings)
      : model_(model), kind_(kind), behind_(behind), around_(surroundings) {}

  std::string name() const override { return behind_ != nullptr ? behind_->name() : "a model"; }
  unsigned depth() const noexcept override { return behind_ != nullptr ? behind_->depth() : 1; }
  void connect(base::Waker& waker) override {
    waker_ = &waker;
    if (behind_ != nullptr) behind_->connect(waker);
  }
  Launched launch(DeviceTask& task, std::int64_t now_ns) override;
  std::int64_t poll(std::int64_t now_ns, std::vector<Ended>& ended) override;
  std::optional<std::int64_t> expected_ns(const Task& task) const override;
  void hurry() noexcept override { hurries_ = true; }
  void finish() noexcept override {
    if (behind_ != nullptr) behind_->finish();
  }
  bool runs_behind(const DeviceTask& before, const Task& task) const override;
  unsigned batch() const noexcept override { return behind_ != nullptr ? behind_->batch() : 1; }
  void flush() override {
    if (behind_ != nullptr) behind_->flush();
  }

 private:
  std::optional<EmulatedWork> work_of(const Task& task, unsigned implementation) const;
  void begin(const EmulatedWork& work, unsigned place, std::int64_t now_ns);

  struct Modelled {
    unsigned place = 0;
    std::int64_t until_ns = 0;
    std::int64_t begin_ns = 0;
  };

  const Emulation& model_;
  const DeviceKind kind_;
  Device* const behind_;
  const Surroundings around_;
  base::Waker* waker_ = nullptr;
  std::deque<Modelled> modelled_;  ///< tasks in the order of their ends
  /// The first task, if it moves bytes: a CPU worker has one at a time.
  std::optional<ModelledMemory::Running> moving_;
  std::int64_t busy_until_ns_ = 0;
  unsigned in_flight_behind_ = 0;
  bool hurries_ = false;
};

}  // namespace tandem::runtime
