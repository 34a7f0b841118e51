// tandem/runtime/device/opencl/opencl_device.cpp: compiles kernels, posts them, and reports their ends.
#include "tandem/runtime/device/opencl/opencl_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tandem/base/exceptions.hpp"

namespace tandem::runtime::opencl {

struct OpenClDevice::Heard {
  OpenClDevice& device;
  unsigned place = 0;
  cl_event first = nullptr;
};

OpenClDevice::~OpenClDevice() {
  finish();
  for (const auto& [key, kernel] : kernels_) clReleaseKernel(kernel.kernel);
  for (const auto& [key, program] : programs_) clReleaseProgram(program);
}

void OpenClDevice::release(cl_event first, cl_event last) noexcept {
  for (const cl_event event : {first, last})
    if (event != nullptr) clReleaseEvent(event);
}

/// Abandons the present launch. Its posted work uses the task's data until it has ended, so this waits for it.
void OpenClDevice::give_up() noexcept {
  clFinish(card_->kernels());
  release(posted_.first, posted_.last);
  posted_ = {};
}

/// Calls the kernel. Afterwards `posted_.last` is behind all that the kernel has posted.
void OpenClDevice::run(DeviceTask& task) {
  posted_ = {};
  try {
    task.run(static_cast<OpenClQueue*>(this));
    if (posted_.last != nullptr && !posted_.natively) return;
    cl_event marker = nullptr;
    check(clEnqueueMarkerWithWaitList(card_->kernels(), 0, nullptr, &marker), "no marker");
    release(posted_.first, posted_.last);
    posted_.first = nullptr;  // a marker has no start time for the work before it
    posted_.last = marker;
  } catch (const DeviceError& error) {
    const bool has_posted = posted_.any();
    give_up();
    if (has_posted && error.effect() == DeviceEffect::refused) throw DeviceError(DeviceEffect::broken, error.what());
    throw;
  } catch (...) {
    give_up();
    throw;
  }
}

Device::Launched OpenClDevice::launch(DeviceTask& task, std::int64_t) {
  run(task);
  auto waits = std::make_unique<Heard>(Heard{*this, task.place(), posted_.first});
  {
    const std::lock_guard guard(mutex_);
    ++pending_;
  }
  if (const cl_int error = clSetEventCallback(posted_.last, CL_COMPLETE, &heard, waits.get()); error != CL_SUCCESS) {
    give_up();
    const std::lock_guard guard(mutex_);
    --pending_;
    throw DeviceError(DeviceEffect::broken, fmt::format("no callback: {}", name_of_error(error)));
  }
  waits.release();
  posted_ = {};
  clFlush(card_->kernels());
  return Launched::posted;
}

void CL_CALLBACK OpenClDevice::heard(cl_event event, cl_int status, void* context) {
  const std::unique_ptr<Heard> heard(static_cast<Heard*>(context));
  OpenClDevice& device = heard->device;
  const std::lock_guard guard(device.mutex_);  // held until the end of this function: `finish` waits for it
  device.reports_.push_back({heard->place, heard->first, event, status});
  device.waker_->wake();
  --device.pending_;
  device.changed_.notify_all();
}

/// Time from the beginning of the task's first kernel to the end of its last one; 0: not known.
std::int64_t OpenClDevice::took_ns(const Report& report) noexcept {
  cl_ulong start_ns = 0, end_ns = 0;
  const bool is_known =
      report.first != nullptr &&
      clGetEventProfilingInfo(report.first, CL_PROFILING_COMMAND_START, sizeof(start_ns), &start_ns, nullptr) ==
          CL_SUCCESS &&
      clGetEventProfilingInfo(report.last, CL_PROFILING_COMMAND_END, sizeof(end_ns), &end_ns, nullptr) == CL_SUCCESS;
  return is_known && end_ns > start_ns ? static_cast<std::int64_t>(end_ns - start_ns) : 0;
}

std::int64_t OpenClDevice::poll(std::int64_t, std::vector<Ended>& ended) {
  std::vector<Report> reports;
  {
    const std::lock_guard guard(mutex_);
    reports.swap(reports_);
  }
  for (const Report& report : reports) {
    Ended one{.place = report.place, .kernel_ns = took_ns(report)};
    if (report.status != CL_COMPLETE) {
      const DeviceEffect effect = report.status == CL_DEVICE_NOT_AVAILABLE ? DeviceEffect::lost : DeviceEffect::broken;
      one.failure = std::make_exception_ptr(
          DeviceError(effect, fmt::format("the kernel has failed: {}", name_of_error(report.status))));
    }
    release(report.first, report.last);
    ended.push_back(std::move(one));
  }
  return kWhenWoken;
}

void OpenClDevice::finish() noexcept {
  clFinish(card_->kernels());
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_ == 0; });
  for (const Report& report : std::exchange(reports_, {})) release(report.first, report.last);
}

// --- kernels

cl_program OpenClDevice::program_of(const OpenClSource& source) {
  const auto known = programs_.find(std::tie(source.options, source.text));
  if (known != programs_.end()) return known->second;
  cl_int error = CL_SUCCESS;
  const char* text = source.text.c_str();
  const cl_program program = clCreateProgramWithSource(card_->context(), 1, &text, nullptr, &error);
  check(error, "no program");
  const cl_device_id device = card_->facts().device;
  error = clBuildProgram(program, 1, &device, source.options.c_str(), nullptr, nullptr);
  if (error != CL_SUCCESS) {
    std::size_t bytes = 0;
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
    std::string log(bytes, '\0');
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    clReleaseProgram(program);
    throw std::runtime_error(fmt::format("the OpenCL source of kernel '{}' does not compile for {}: {}\n{}",
                                         source.kernel, card_->name(), name_of_error(error), log));
  }
  programs_.emplace(std::tuple(source.options, source.text), program);
  return program;
}

OpenClDevice::Kernel& OpenClDevice::kernel_of(const OpenClSource& source) {
  const auto key = std::tie(source.kernel, source.options, source.text);
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  const cl_program program = program_of(source);
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, source.kernel.c_str(), &error);
  if (error == CL_INVALID_KERNEL_NAME)
    throw std::runtime_error(
        fmt::format("the OpenCL source has no kernel '{}'; name a __kernel function of it", source.kernel));
  check(error, "no kernel");
  return kernels_.emplace(key, Kernel{kernel, source.kernel}).first->second;
}

void* OpenClDevice::native_memory(const void* data) {
  const Buffer* const buffer = card_->buffers().find(data);
  return buffer != nullptr ? buffer->memory : nullptr;
}

void OpenClDevice::set_arguments(const Kernel& kernel, std::span<const OpenClArgument> arguments) {
  cl_uint wanted = 0;
  check(clGetKernelInfo(kernel.kernel, CL_KERNEL_NUM_ARGS, sizeof(wanted), &wanted, nullptr), "no number of arguments");
  if (wanted != arguments.size())
    throw std::runtime_error(fmt::format(
        "OpenCL kernel '{}' has {} parameters, and what is submitted makes {} arguments: a value one, a "
        "scalar one, a vector two (pointer, count), a matrix four (pointer, rows, columns, leading dimension)",
        kernel.name, wanted, arguments.size()));
  for (cl_uint i = 0; i < wanted; ++i) {
    const OpenClArgument& argument = arguments[i];
    const void* memory = argument.bytes == 0 ? native_memory(argument.value) : nullptr;
    const cl_int error = argument.bytes == 0 ? clSetKernelArg(kernel.kernel, i, sizeof(cl_mem), &memory)
                                             : clSetKernelArg(kernel.kernel, i, argument.bytes, argument.value);
    if (error == CL_INVALID_ARG_SIZE || error == CL_INVALID_ARG_VALUE)
      throw std::runtime_error(
          fmt::format("argument {} of OpenCL kernel '{}' does not fit its parameter, which has another size or is no "
                      "pointer to __global memory: {}",
                      i + 1, kernel.name, name_of_error(error)));
    check(error, "an argument was refused");
  }
}

/// Whether the device would refuse the range each time: a mistake of the program, for which no other worker can help.
static bool is_wrong_range(cl_int error) noexcept {
  return error == CL_INVALID_WORK_DIMENSION || error == CL_INVALID_WORK_GROUP_SIZE ||
         error == CL_INVALID_WORK_ITEM_SIZE || error == CL_INVALID_GLOBAL_WORK_SIZE;
}

void OpenClDevice::launch(const Kernel& kernel, std::span<const OpenClArgument> arguments, const OpenClRange& range) {
  set_arguments(kernel, arguments);
  if (std::any_of(range.global.begin(), range.global.begin() + range.dimensions,
                  [](std::size_t count) { return count == 0; }))
    return;
  cl_event event = nullptr;
  const cl_int error =
      clEnqueueNDRangeKernel(card_->kernels(), kernel.kernel, range.dimensions, nullptr, range.global.data(),
                             range.local[0] != 0 ? range.local.data() : nullptr, 0, nullptr, &event);
  if (is_wrong_range(error))
    throw UsageError(fmt::format("OpenCL kernel '{}' cannot run with these work items and work groups on {}: {}",
                                 kernel.name, card_->name(), name_of_error(error)));
  check(error, "the launch was refused");
  if (posted_.last != nullptr) clReleaseEvent(posted_.last);
  posted_.last = event;
  if (posted_.first != nullptr) return;
  clRetainEvent(event);
  posted_.first = event;
}

}  // namespace tandem::runtime::opencl
