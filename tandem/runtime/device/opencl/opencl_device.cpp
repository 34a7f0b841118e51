// tandem/runtime/device/opencl/opencl_device.cpp: compiles kernels, posts them, and hears of their ends.
#include "tandem/runtime/device/opencl/opencl_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace tandem::runtime::opencl {

struct OpenClDevice::Heard {
  OpenClDevice& device;
  unsigned place = 0;
};

OpenClDevice::~OpenClDevice() {
  finish();
  for (const auto& [key, kernel] : kernels_) clReleaseKernel(kernel);
  for (const auto& [key, program] : programs_) clReleaseProgram(program);
}

Device::Launched OpenClDevice::launch(DeviceTask& task, std::int64_t) {
  const auto drop_last = [&] {
    if (last_ != nullptr) clReleaseEvent(std::exchange(last_, nullptr));
  };
  try {
    task.run(static_cast<OpenClQueue*>(this));
    // A kernel may have posted by calls of its own.
    if (last_ == nullptr) check(clEnqueueMarkerWithWaitList(card_->kernels(), 0, nullptr, &last_), "no marker");
  } catch (...) {
    clFinish(card_->kernels());  // what it had posted before uses the task's data
    drop_last();
    throw;
  }
  auto waits = std::make_unique<Heard>(Heard{*this, task.place()});
  {
    const std::lock_guard guard(mutex_);
    ++pending_;
  }
  if (const cl_int error = clSetEventCallback(last_, CL_COMPLETE, &heard, waits.get()); error != CL_SUCCESS) {
    clFinish(card_->kernels());
    drop_last();
    const std::lock_guard guard(mutex_);
    --pending_;
    throw DeviceError(DeviceEffect::broken, fmt::format("no callback: {}", name_of_error(error)));
  }
  waits.release();
  last_ = nullptr;
  clFlush(card_->kernels());
  return Launched::posted;
}

void CL_CALLBACK OpenClDevice::heard(cl_event event, cl_int status, void* context) {
  const std::unique_ptr<Heard> heard(static_cast<Heard*>(context));
  OpenClDevice& device = heard->device;
  const std::lock_guard guard(device.mutex_);  // until the end: `finish` waits for it
  device.reports_.push_back({heard->place, event, status});
  device.waker_->wake();
  --device.pending_;
  device.changed_.notify_all();
}

std::int64_t OpenClDevice::poll(std::int64_t, std::vector<Ended>& ended) {
  std::vector<Report> reports;
  {
    const std::lock_guard guard(mutex_);
    reports.swap(reports_);
  }
  for (const Report& report : reports) {
    Ended one{.place = report.place};
    if (report.status != CL_COMPLETE) {
      const DeviceEffect effect = report.status == CL_DEVICE_NOT_AVAILABLE ? DeviceEffect::lost : DeviceEffect::broken;
      one.failure = std::make_exception_ptr(DeviceError(effect, fmt::format("the kernel has failed: {}", name_of_error(report.status))));
    }
    cl_ulong start_ns = 0, end_ns = 0;
    if (clGetEventProfilingInfo(report.event, CL_PROFILING_COMMAND_START, sizeof(start_ns), &start_ns, nullptr) == CL_SUCCESS &&
        clGetEventProfilingInfo(report.event, CL_PROFILING_COMMAND_END, sizeof(end_ns), &end_ns, nullptr) == CL_SUCCESS && end_ns > start_ns)
      one.kernel_ns = static_cast<std::int64_t>(end_ns - start_ns);
    clReleaseEvent(report.event);
    ended.push_back(std::move(one));
  }
  return kWhenWoken;
}

void OpenClDevice::finish() noexcept {
  clFinish(card_->kernels());
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_ == 0; });
  for (const Report& report : std::exchange(reports_, {})) clReleaseEvent(report.event);
}

// --- kernels

cl_program OpenClDevice::program_of(const OpenClSource& source) {
  const auto known = programs_.find({source.text, source.options});
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
    throw std::runtime_error(fmt::format("the OpenCL source of kernel '{}' does not compile for {}: {}\n{}", source.kernel, card_->name(),
                                         name_of_error(error), log));
  }
  programs_.emplace(std::pair(source.text, source.options), program);
  return program;
}

cl_kernel OpenClDevice::kernel_of(const OpenClSource& source) {
  const cl_program program = program_of(source);
  const auto known = kernels_.find({program, source.kernel});
  if (known != kernels_.end()) return known->second;
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, source.kernel.c_str(), &error);
  if (error == CL_INVALID_KERNEL_NAME)
    throw std::runtime_error(fmt::format("the OpenCL source has no kernel '{}'; name a __kernel function of it", source.kernel));
  check(error, "no kernel");
  kernels_.emplace(std::pair(program, source.kernel), kernel);
  return kernel;
}

void* OpenClDevice::native_memory(const void* data) {
  const Buffer* const buffer = card_->buffers().find(data);
  return buffer != nullptr ? buffer->memory : nullptr;
}

void OpenClDevice::launch(const OpenClSource& source, std::span<const OpenClArgument> arguments, const OpenClRange& range) {
  const cl_kernel kernel = kernel_of(source);
  cl_uint wanted = 0;
  check(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(wanted), &wanted, nullptr), "no number of arguments");
  if (wanted != arguments.size())
    throw std::runtime_error(fmt::format("OpenCL kernel '{}' has {} parameters, and what is submitted makes {} arguments: a value one, a "
                                         "scalar one, a vector two (pointer, count), a matrix four (pointer, rows, columns, leading dimension)",
                                         source.kernel, wanted, arguments.size()));
  for (cl_uint i = 0; i < wanted; ++i) {
    const OpenClArgument& argument = arguments[i];
    const void* memory = argument.bytes == 0 ? native_memory(argument.value) : nullptr;
    const cl_int error = argument.bytes == 0 ? clSetKernelArg(kernel, i, sizeof(cl_mem), &memory)
                                             : clSetKernelArg(kernel, i, argument.bytes, argument.value);
    if (error == CL_INVALID_ARG_SIZE || error == CL_INVALID_ARG_VALUE)
      throw std::runtime_error(fmt::format("argument {} of OpenCL kernel '{}' does not fit its parameter, which has another size or is no "
                                           "pointer to __global memory: {}",
                                           i + 1, source.kernel, name_of_error(error)));
    check(error, "an argument was refused");
  }
  if (std::any_of(range.global.begin(), range.global.begin() + range.dimensions, [](std::size_t count) { return count == 0; })) return;
  cl_event event = nullptr;
  check(clEnqueueNDRangeKernel(card_->kernels(), kernel, range.dimensions, nullptr, range.global.data(),
                               range.local[0] != 0 ? range.local.data() : nullptr, 0, nullptr, &event),
        "the launch was refused");
  if (last_ != nullptr) clReleaseEvent(last_);
  last_ = event;
}

}  // namespace tandem::runtime::opencl
