// tandem/runtime/device/opencl/opencl_card.cpp: finds devices, makes their queues, and waits for events.
#include "tandem/runtime/device/opencl/opencl_card.hpp"

#include <fmt/format.h>

#include <utility>

namespace tandem::runtime::opencl {

namespace {

std::string text_of(cl_device_id device, cl_device_info what) {
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "?";
  std::string text(bytes, '\0');
  clGetDeviceInfo(device, what, bytes, text.data(), nullptr);
  text.resize(bytes - 1);
  return text;
}

template <class T>
T number_of(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof(value), &value, nullptr);
  return value;
}

/// PCI address by the extension cl_khr_pci_bus_info; empty: the device has none.
std::string bus_address_of(cl_device_id device) {
  constexpr cl_device_info kBusInfo = 0x410F;
  struct {
    cl_uint domain, bus, device, function;
  } at{};
  if (clGetDeviceInfo(device, kBusInfo, sizeof(at), &at, nullptr) != CL_SUCCESS) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", at.domain, at.bus, at.device, at.function);
}

std::string platform_name_of(cl_platform_id platform) {
  char text[256] = "?";
  clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(text), text, nullptr);
  return text;
}

}  // namespace

std::string name_of_error(cl_int error) {
  switch (error) {
    case CL_DEVICE_NOT_FOUND: return "CL_DEVICE_NOT_FOUND";
    case CL_DEVICE_NOT_AVAILABLE: return "CL_DEVICE_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE: return "CL_BUILD_PROGRAM_FAILURE";
    case CL_INVALID_VALUE: return "CL_INVALID_VALUE";
    case CL_INVALID_KERNEL_NAME: return "CL_INVALID_KERNEL_NAME";
    case CL_INVALID_ARG_INDEX: return "CL_INVALID_ARG_INDEX";
    case CL_INVALID_ARG_VALUE: return "CL_INVALID_ARG_VALUE";
    case CL_INVALID_ARG_SIZE: return "CL_INVALID_ARG_SIZE";
    case CL_INVALID_KERNEL_ARGS: return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_WORK_DIMENSION: return "CL_INVALID_WORK_DIMENSION";
    case CL_INVALID_WORK_ITEM_SIZE: return "CL_INVALID_WORK_ITEM_SIZE";
    case CL_INVALID_GLOBAL_WORK_SIZE: return "CL_INVALID_GLOBAL_WORK_SIZE";
    case CL_INVALID_WORK_GROUP_SIZE: return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
    default: return fmt::format("OpenCL error {}", error);
  }
}

void check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  const DeviceEffect effect = error == CL_DEVICE_NOT_AVAILABLE ? DeviceEffect::lost : DeviceEffect::refused;
  throw DeviceError(effect, fmt::format("{}: {}", what, name_of_error(error)));
}

std::vector<CardFacts> find_cards() {
  cl_uint platform_count = 0;
  if (clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(platform_count);
  clGetPlatformIDs(platform_count, platforms.data(), nullptr);
  std::vector<CardFacts> cards;
  for (const cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
    for (const cl_device_id device : devices)
      cards.push_back({.platform = platform,
                       .device = device,
                       .name = text_of(device, CL_DEVICE_NAME),
                       .platform_name = platform_name_of(platform),
                       .version = text_of(device, CL_DEVICE_VERSION),
                       .memory_bytes = number_of<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE),
                       .largest_buffer_bytes = number_of<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
                       .units = number_of<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS),
                       .is_processor = (number_of<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0,
                       .bus_address = bus_address_of(device)});
  }
  return cards;
}

Card::Card(CardFacts facts, unsigned number, std::shared_ptr<Buffers> buffers)
    : facts_(std::move(facts)),
      name_(fmt::format("opencl {} ({})", number, facts_.name)),
      buffers_(std::move(buffers)) {
  cl_int error = CL_SUCCESS;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(facts_.platform), 0};
  context_ = clCreateContext(properties, 1, &facts_.device, nullptr, nullptr, &error);
  check(error, "no context");
  for (cl_command_queue* const queue : {&kernels_, &to_device_, &from_device_}) {
    *queue = clCreateCommandQueue(context_, facts_.device, queue == &kernels_ ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
    check(error, "no queue");
  }
  thread_ = base::Thread({.name = "tandem-opencl"}, [this] { serve(); });
}

Card::~Card() {
  finish();
  if (thread_.joinable()) {
    {
      const std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  for (const cl_command_queue queue : {kernels_, to_device_, from_device_})
    if (queue != nullptr) clReleaseCommandQueue(queue);
  if (context_ != nullptr) clReleaseContext(context_);
}

bool Card::is_lost() const noexcept {
  cl_bool is_available = CL_TRUE;
  return clGetDeviceInfo(facts_.device, CL_DEVICE_AVAILABLE, sizeof(is_available), &is_available, nullptr) ==
             CL_DEVICE_NOT_AVAILABLE ||
         is_available == CL_FALSE;
}

struct Card::Waiting {
  Card& card;
  std::function<void(cl_int)> ended;
};

void CL_CALLBACK Card::heard(cl_event event, cl_int status, void* waiting) {
  const std::unique_ptr<Waiting> heard(static_cast<Waiting*>(waiting));
  clReleaseEvent(event);
  Card& card = heard->card;
  const std::lock_guard guard(card.mutex_);
  card.calls_.push_back({std::move(heard->ended), status});
  card.changed_.notify_all();
}

void Card::when_ended(cl_command_queue queue, cl_event event, std::function<void(cl_int status)> ended) {
  auto waiting = std::make_unique<Waiting>(Waiting{*this, std::move(ended)});
  {
    const std::lock_guard guard(mutex_);
    ++pending_;
  }
  const cl_int error = clSetEventCallback(event, CL_COMPLETE, &heard, waiting.get());
  if (error != CL_SUCCESS) {  // the command may run: it must not use its memory any more when this returns
    clWaitForEvents(1, &event);
    clReleaseEvent(event);
    const std::lock_guard guard(mutex_);
    --pending_;
    changed_.notify_all();
    check(error, "no callback");
  }
  waiting.release();
  clFlush(queue);
}

void Card::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !calls_.empty(); });
    if (calls_.empty()) return;
    std::vector<Call> calls = std::exchange(calls_, {});
    lock.unlock();
    for (Call& call : calls) call.ended(call.status);
    const std::size_t count = calls.size();
    calls.clear();
    lock.lock();
    pending_ -= count;
    changed_.notify_all();
  }
}

void Card::finish() noexcept {
  for (const cl_command_queue queue : {kernels_, to_device_, from_device_})
    if (queue != nullptr) clFinish(queue);
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_ == 0; });
}

}  // namespace tandem::runtime::opencl
