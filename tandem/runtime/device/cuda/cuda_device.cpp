// tandem/runtime/device/cuda/cuda_device.cpp: posts kernels to streams, and reports their ends.
#include "tandem/runtime/device/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::runtime::cuda {

/// The stream of one lane, and the memory that its tasks have besides their data. Tasks posted one behind the other use
/// the same scratch memory, since the stream runs them in order. The worker's thread uses this object during a launch;
/// the lane's thread gets what it needs as arguments.
class CudaDevice::Place final : public CudaQueue {
 public:
  explicit Place(CudaDevice& device)
      : device_(device), lane_(device.card_->driver(), device.card_->context()), graphs_(device.card_->driver()) {
    void* ints = nullptr;
    driver().check(driver().allocate_host(&ints, kInts * sizeof(int), kHostAllocPortable), "no page-locked memory");
    ints_ = static_cast<int*>(ints);
  }
  ~Place() override {
    lane_.finish();
    device_.libraries_->blas.destroy(blas_);
    device_.libraries_->solver.destroy(solver_);
    if (scratch_ != nullptr) device_.card_->release(scratch_, scratch_bytes_);
    release_outgrown();
    driver().release_host(ints_);
  }

  Lane& lane() noexcept { return lane_; }
  bool has_posted() const noexcept { return has_posted_; }
  /// Whether the last launched task reads numbers.
  bool reads() const noexcept { return reads_; }
  /// Begins a launch; `is_behind`: the task is behind others of the lane.
  void begin(bool is_behind) {
    has_posted_ = has_scratch_ = has_blas_ = has_solver_ = false;
    readings_.clear();
    is_behind_ = is_behind;
    holds_ = is_behind && device_.has_graphs_;
    if (!is_behind) release_outgrown();
    if (!holds_) driver().check(lane_.mark(since_), "no event");
  }
  /// Ends a launch: the device reports when the task at `place` has ended.
  Status report_end(unsigned place) {
    reads_ = !readings_.empty();
    if (holds_) {
      batch_.end_task(place);
      return kSuccess;
    }
    return lane_.when_ended(std::exchange(since_, nullptr),
                            [this, place, readings = std::move(readings_)](Status status, std::int64_t took_ns) {
                              device_.report({place, status, took_ns, status == kSuccess ? tell(readings) : nullptr});
                            });
  }
  /// Abandons a failed launch, whose posted work has ended.
  void give_up() {
    batch_.take_open_task();
    lane_.forget(std::exchange(since_, nullptr));
  }
  /// Posts what tasks behind others have launched: as a graph if it comes again.
  void post_batch();

  void launch(const CudaSource& source, std::span<const CudaArgument> arguments, const CudaRange& range) override {
    launch(device_.kernel_of(source), arguments, range);
  }
  void launch_kept(const std::shared_ptr<const CudaSource>& source, std::span<const CudaArgument> arguments,
                   const CudaRange& range) override {
    launch(device_.kept_.find(source, [this](const CudaSource& fresh) -> Kernel& { return device_.kernel_of(fresh); }),
           arguments, range);
  }
  void* stream() override {
    hold_no_longer();
    has_posted_ = true;
    return lane_.stream();
  }
  void* blas() override {
    hold_no_longer();
    if (!std::exchange(has_blas_, true)) prepare(device_.libraries_->blas, blas_);
    has_posted_ = true;
    return blas_;
  }
  void* solver() override {
    hold_no_longer();
    if (!std::exchange(has_solver_, true)) prepare(device_.libraries_->solver, solver_);
    has_posted_ = true;
    return solver_;
  }
  void* blas_function(const char* symbol) override { return device_.libraries_->blas.function(symbol); }
  void* solver_function(const char* symbol) override { return device_.libraries_->solver.function(symbol); }
  void* scratch(std::size_t bytes) override;
  void read_int(const void* device_address, std::function<void(int)> then) override;

 private:
  static constexpr std::size_t kInts = 8;
  const Driver& driver() const noexcept { return device_.card_->driver(); }
  void launch(Kernel& kernel, std::span<const CudaArgument> arguments, const CudaRange& range);
  std::exception_ptr tell(const std::vector<std::function<void(int)>>& readings) const noexcept;
  /// Prepares the handle as a new one for each task that asks for it.
  void prepare(MathLibrary& library, void*& handle) {
    if (handle == nullptr) handle = library.create();
    library.prepare(handle, lane_.stream());
  }
  /// From now on the kernels of the task being launched are posted at once.
  void hold_no_longer();
  void post_one_by_one();
  void start_all(const Batch::Content& kernels);
  Status start(const KernelNode& kernel);
  void release_outgrown() noexcept {
    for (const auto& [memory, bytes] : outgrown_) device_.card_->release(memory, bytes);
    outgrown_.clear();
  }

  CudaDevice& device_;
  Lane lane_;
  Graphs graphs_;
  Batch batch_;              ///< launched by tasks behind others, and not posted
  Event since_ = nullptr;    ///< event before the task being launched
  bool is_behind_ = false;   ///< whether the task being launched is behind others
  bool holds_ = false;       ///< kernels of the task being launched go to the batch
  bool reads_ = false;
  bool has_posted_ = false;  ///< the task being launched has posted work, or may have
  bool has_scratch_ = false;
  bool has_blas_ = false;    ///< the task being launched has asked for the handle
  bool has_solver_ = false;
  void* blas_ = nullptr;
  void* solver_ = nullptr;
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  /// Scratch memory that was too small and that tasks in flight may use.
  std::vector<std::pair<void*, std::size_t>> outgrown_;
  /// Numbers of the lane's last task; page-locked, since reading them would otherwise wait for the stream.
  int* ints_ = nullptr;
  std::vector<std::function<void(int)>> readings_;
};

CudaDevice::CudaDevice(std::shared_ptr<Card> card, std::shared_ptr<Libraries> libraries, unsigned depth, bool graphs)
    : card_(std::move(card)), libraries_(std::move(libraries)), has_graphs_(graphs && card_->driver().has_graphs) {
  const Within within(card_->driver(), card_->context());
  for (unsigned i = 0; i < depth; ++i) places_.push_back(std::make_unique<Place>(*this));
}

CudaDevice::~CudaDevice() {
  const Within within(card_->driver(), card_->context());
  places_.clear();
  for (const auto& [source, kernel] : kernels_) card_->driver().unload_module(kernel.module);
}

Device::Launched CudaDevice::launch(DeviceTask& task, std::int64_t) {
  card_->enter();
  Place& place = *places_[task.lane()];
  const Driver& driver = card_->driver();
  try {
    place.begin(task.place() != task.lane());
    task.run(static_cast<CudaQueue*>(&place));
    driver.check(place.report_end(task.place()), "no event");
  } catch (const DeviceError& error) {
    // Work that the task had posted uses its data, and may have changed it.
    const Status status = driver.synchronize_stream(place.lane().stream());
    place.give_up();
    if (is_lost(status)) std::rethrow_exception(driver.failure_of(status, "the kernel has failed", true));
    if (place.has_posted() && error.effect() == DeviceEffect::refused)
      throw DeviceError(DeviceEffect::broken, error.what());
    throw;
  } catch (...) {
    driver.synchronize_stream(place.lane().stream());
    place.give_up();
    throw;
  }
  return Launched::posted;
}

/// A stream is in order. But the numbers that a task reads are reported before others begin.
bool CudaDevice::runs_behind(const DeviceTask& before, const Task&) const { return !places_[before.lane()]->reads(); }

void CudaDevice::flush() {
  if (!has_graphs_) return;
  card_->enter();
  for (const auto& place : places_) place->post_batch();
}

void CudaDevice::report(Report report) {
  const std::lock_guard guard(mutex_);
  reports_.push_back(std::move(report));
  waker_->wake();
}

std::int64_t CudaDevice::poll(std::int64_t, std::vector<Ended>& ended) {
  const std::lock_guard guard(mutex_);
  for (const Report& report : reports_)
    ended.push_back({.place = report.place,
                     .failure = report.thrown != nullptr
                                    ? report.thrown
                                    : card_->driver().failure_of(report.status, "the kernel has failed", true),
                     .kernel_ns = report.took_ns});
  reports_.clear();
  return kWhenWoken;
}

void CudaDevice::finish() noexcept {
  for (const auto& place : places_) place->lane().finish();
}

CudaDevice::Kernel& CudaDevice::kernel_of(const CudaSource& source) {
  const auto key = std::tie(source.kernel, source.options, source.text);
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  const CompiledKernel compiled =
      libraries_->compiler.compile(source, card_->facts().major * 10 + card_->facts().minor);
  const Driver& driver = card_->driver();
  Kernel kernel{.name = source.kernel};
  driver.check(driver.load_module(&kernel.module, compiled.code.data()), "the device takes no code");
  try {
    driver.check(driver.find_function(&kernel.function, kernel.module, compiled.symbol.c_str()),
                 "the code has no such kernel");
    describe(kernel);
  } catch (...) {
    driver.unload_module(kernel.module);
    throw;
  }
  return kernels_.emplace(key, std::move(kernel)).first->second;
}

void CudaDevice::describe(Kernel& kernel) const {
  const Driver& driver = card_->driver();
  for (const auto& [attribute, value] : {std::pair{kFunctionMaxThreads, &kernel.most_threads},
                                         {kFunctionStaticShared, &kernel.static_shared},
                                         {kFunctionMaxDynamicShared, &kernel.allowed_shared}}) {
    int number = 0;
    driver.check(driver.function_attribute(&number, attribute, kernel.function), "no attribute of a kernel");
    *value = static_cast<unsigned>(std::max(number, 0));
  }
  kernel.knows_parameters = driver.parameter_info != nullptr;
  if (!kernel.knows_parameters) return;
  for (std::size_t offset = 0, bytes = 0;
       driver.parameter_info(kernel.function, kernel.parameter_bytes.size(), &offset, &bytes) == kSuccess;)
    kernel.parameter_bytes.push_back(bytes);
}

void CudaDevice::check_arguments(const Kernel& kernel, std::span<const CudaArgument> arguments) const {
  if (!kernel.knows_parameters) return;
  if (kernel.parameter_bytes.size() != arguments.size())
    throw std::runtime_error(fmt::format(
        "CUDA kernel '{}' has {} parameters, and what is submitted makes {} arguments: a value one, a "
        "scalar one, a vector two (pointer, count), a matrix four (pointer, rows, columns, leading dimension)",
        kernel.name, kernel.parameter_bytes.size(), arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t bytes = arguments[i].bytes == 0 ? sizeof(Address) : arguments[i].bytes;
    if (bytes != kernel.parameter_bytes[i])
      throw std::runtime_error(fmt::format("argument {} of CUDA kernel '{}' has {} bytes, and its parameter {}", i + 1,
                                           kernel.name, bytes, kernel.parameter_bytes[i]));
  }
}

/// Number of blocks; none: nothing runs. Throws for a range beyond the device's limits, which the device would refuse
/// each time: a mistake of the program.
std::optional<std::array<unsigned, 3>> CudaDevice::blocks_of(const Kernel& kernel, const CudaRange& range) const {
  const CardLimits& limits = card_->facts().limits;
  const auto wrong = [&](const std::string& what) {
    throw UsageError(fmt::format("CUDA kernel '{}' is to run with {}", kernel.name, what));
  };
  std::array<unsigned, 3> blocks{};
  std::size_t threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (range.block[i] == 0) wrong("blocks of no threads");
    if (range.block[i] > limits.block[i])
      wrong(fmt::format("blocks of {} threads in dimension {}, of which {} has {} at most", range.block[i], i + 1,
                        card_->name(), limits.block[i]));
    threads *= range.block[i];
    const std::size_t count = range.threads[i] / range.block[i] + (range.threads[i] % range.block[i] != 0 ? 1 : 0);
    if (count == 0) return std::nullopt;
    if (count > limits.grid[i])
      wrong(fmt::format("{} blocks in dimension {}, of which {} has {} at most", count, i + 1, card_->name(),
                        limits.grid[i]));
    blocks[i] = static_cast<unsigned>(count);
  }
  if (const unsigned most = std::min(kernel.most_threads, limits.threads_of_block); threads > most)
    wrong(fmt::format("blocks of {} threads, and {} runs it with {} at most", threads, card_->name(), most));
  if (const std::size_t shared = std::size_t{range.shared_bytes} + kernel.static_shared;
      shared > limits.shared_of_block)
    wrong(fmt::format("{} bytes of shared memory for a block, of which {} has {} at most", shared, card_->name(),
                      limits.shared_of_block));
  return blocks;
}

/// Beyond some 48 KiB a kernel gets dynamic shared memory only after a call of the driver.
void CudaDevice::allow_shared(Kernel& kernel, unsigned bytes) const {
  if (bytes <= kernel.allowed_shared) return;
  const Driver& driver = card_->driver();
  driver.check(driver.set_function_attribute(kernel.function, kFunctionMaxDynamicShared, static_cast<int>(bytes)),
               "no such shared memory");
  kernel.allowed_shared = bytes;
}

void CudaDevice::Place::launch(Kernel& kernel, std::span<const CudaArgument> arguments, const CudaRange& range) {
  device_.check_arguments(kernel, arguments);
  const auto blocks = device_.blocks_of(kernel, range);
  if (!blocks) return;
  device_.allow_shared(kernel, range.shared_bytes);
  const KernelLaunch launch{kernel.function, *blocks, range.block, range.shared_bytes, arguments};
  if (holds_) return batch_.add(launch);
  Batch alone;
  alone.add(launch);
  start_all(alone.content());
}

/// Passes the numbers to the functions of the task. Their exceptions count as thrown by its kernel.
std::exception_ptr CudaDevice::Place::tell(const std::vector<std::function<void(int)>>& readings) const noexcept {
  try {
    for (std::size_t i = 0; i < readings.size(); ++i) readings[i](ints_[i]);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// Starts the kernels of the task being launched.
void CudaDevice::Place::start_all(const Batch::Content& kernels) {
  Batch::visit(
      kernels,
      [this](const KernelNode& kernel) {
        driver().check(start(kernel), "the launch was refused");
        has_posted_ = true;
      },
      [] {});
}

/// Starts a kernel; the driver copies the arguments.
Status CudaDevice::Place::start(const KernelNode& kernel) {
  return driver().launch(kernel.function, kernel.blocks[0], kernel.blocks[1], kernel.blocks[2], kernel.threads[0],
                         kernel.threads[1], kernel.threads[2], kernel.shared_bytes, lane_.stream(), kernel.arguments,
                         nullptr);
}

void CudaDevice::Place::hold_no_longer() {
  if (!std::exchange(holds_, false)) return;
  const Batch::Content begun = batch_.take_open_task();
  post_batch();
  driver().check(lane_.mark(since_), "no event");
  start_all(begun);
}

void CudaDevice::Place::post_batch() {
  const std::vector<unsigned>& places = batch_.places();
  if (places.empty()) return;
  Graph* const graph = places.size() > 1 ? graphs_.find(batch_) : nullptr;
  if (graph != nullptr && graph->launch(lane_.stream()) == kSuccess) {
    for (std::size_t i = 0; i < places.size(); ++i)
      lane_.when_passed(
          graph->event(i), graph->event(i + 1),
          [this, graph, place = places[i], is_last = i + 1 == places.size()](Status status, std::int64_t took_ns) {
            if (is_last) graph->land();
            device_.report({place, status, took_ns});
          });
  } else {
    post_one_by_one();
  }
  batch_.clear();
}

/// Posts the kernels of the batch. A task whose kernels the driver refuses counts as one that failed later, since its
/// launch was a success.
void CudaDevice::Place::post_one_by_one() {
  auto place = batch_.places().begin();
  Event since = nullptr;
  Status status = lane_.mark(since);
  Batch::visit(
      batch_.content(),
      [&](const KernelNode& kernel) {
        if (status == kSuccess) status = start(kernel);
      },
      [&] {
        if (status == kSuccess)
          status = lane_.when_ended(std::exchange(since, nullptr), [this, at = *place](Status ended,
                                                                                       std::int64_t took_ns) {
            device_.report({at, ended, took_ns});
          });
        if (status != kSuccess) {
          driver().synchronize_stream(lane_.stream());
          lane_.forget(std::exchange(since, nullptr));
          device_.report({*place, status, 0});
        }
        status = ++place != batch_.places().end() ? lane_.mark(since) : kSuccess;
      });
}

void* CudaDevice::Place::scratch(std::size_t bytes) {
  hold_no_longer();
  if (has_scratch_)
    throw UsageError("a task asks for scratch memory of its CUDA queue a second time; ask once, for all of it");
  has_scratch_ = true;
  if (bytes > scratch_bytes_) {
    if (scratch_ != nullptr) outgrown_.emplace_back(std::exchange(scratch_, nullptr), std::exchange(scratch_bytes_, 0));
    if (!is_behind_) release_outgrown();
    scratch_ = device_.card_->allocate(bytes);
    if (scratch_ == nullptr)
      throw DeviceError(DeviceEffect::refused, fmt::format("no {} bytes of scratch memory", bytes));
    scratch_bytes_ = bytes;
  }
  return scratch_;
}

void CudaDevice::Place::read_int(const void* device_address, std::function<void(int)> then) {
  hold_no_longer();
  if (readings_.size() == kInts) throw UsageError("a task reads more than eight numbers by its CUDA queue");
  driver().check(driver().copy_to_host(ints_ + readings_.size(), reinterpret_cast<std::uintptr_t>(device_address),
                                       sizeof(int), lane_.stream()),
                 "a copy was refused");
  has_posted_ = true;
  readings_.push_back(std::move(then));
}

}  // namespace tandem::runtime::cuda
