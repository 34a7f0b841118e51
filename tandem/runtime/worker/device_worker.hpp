// tandem/runtime/worker/device_worker.hpp: a worker that launches kernels on a device.
#pragma once

#include <vector>

#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/worker/in_flight.hpp"
#include "tandem/runtime/worker/worker.hpp"

namespace tandem::runtime {

/// A step polls the device, ends the tasks that have ended there, and launches tasks whose
/// data is in its memory, up to its depth. While all its places are taken the worker fetches the data of a few more
/// tasks. It sleeps until the device must be polled.
///
/// Stretches. When nothing else is ready for it, the worker posts the successor of a task in flight behind that task
/// (`Device::runs_behind`), if the successor waits for that task alone, would run here, and needs no copy and only
/// memory that is free. So the report of the end to the host and the next launch cost nothing. The successor's count is
/// one larger for that time, so that the end of the task before it does not make it ready. Others do not see stretches:
/// their tasks end in order, and each comes to the front, and begins, at the end of the one before it. A task that
/// would go elsewhere if its device failed after it had begun has none behind it. A device that posts several at once
/// gets them in batches (`Device::flush`).
class DeviceWorker final : public Worker {
 public:
  DeviceWorker(unsigned index, const WorkerSpec& spec, const WorkerOptions& options, Executor& executor,
               const clock::Clock& clock)
      : Worker(index, spec, options, executor, clock),
        device_(spec.unit),
        in_flight_(spec.unit->depth(), options.stretch, index, spec.node) {}

  void visit_running(const std::function<void(const Task&)>& visit) const override { in_flight_.visit(visit); }

 private:
  std::int64_t step_tasks(std::int64_t now_ns) override;
  std::optional<std::int64_t> end_begun(std::int64_t now_ns) override;
  void hurry(std::int64_t now_ns) override;
  std::exception_ptr take_refusal(const Task& task) override { return executor_.take_refusal(task); }
  void check_usable() override;
  void refuse(Task& task, const std::exception_ptr& given) override;
  std::optional<std::int64_t> expected_ns(const Task& task) const override;

  bool go_on(std::int64_t now_ns);
  bool takes_tasks() const noexcept;
  std::int64_t rest_beside_device();
  std::int64_t collect(std::int64_t now_ns);
  void launch(Task& task);
  void post(DeviceTask& launched, std::int64_t now_ns);
  void post_behind();
  bool lengthen(unsigned lane);
  Task* next_of_stretch(unsigned last, std::int64_t now_ns);
  bool stays_if_it_fails(Task& task, const Task* before) const noexcept;
  void come_to_front(unsigned lane);
  void trace_oldest();
  void complete(const Device::Ended& ended);
  bool is_called_off(const Task& task) const noexcept;
  void end_run(const Device::Ended& ended, const DeviceFailure& failure);
  void notice_loss();
  bool may_fall_back(Task& task, bool had_begun);
  void fall_back(Task& task, const std::string& why);
  std::exception_ptr named(const Task& task, const std::exception_ptr& failure, const DeviceFailure& look) const;
  void lose_device(const std::exception_ptr& failure, const DeviceFailure& look);

  Device* const device_;
  InFlight in_flight_;
  Task* next_ = nullptr;  ///< its data is there, and it waits for a place of the device
  std::vector<Device::Ended> ended_;
  std::int64_t ended_at_ns_ = 0;  ///< when the device's last task ended
  std::int64_t usual_ns_ = 0;     ///< what its tasks took lately, in the mean; 0: none has ended
  bool is_timed_ = false;         ///< the device says how long kernels ran
  std::exception_ptr lost_;       ///< why the device runs nothing any more; null: it does
};

}  // namespace tandem::runtime
