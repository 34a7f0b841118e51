// tandem/runtime/device/opencl/opencl_memory.cpp: copies by OpenCL.
#include "tandem/runtime/device/opencl/opencl_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"

namespace tandem::runtime::opencl {

namespace {

std::exception_ptr failure_of(cl_int status, const Card& card) {
  if (status == CL_COMPLETE) return nullptr;
  const DeviceEffect effect = status == CL_DEVICE_NOT_AVAILABLE ? DeviceEffect::lost : DeviceEffect::refused;
  return std::make_exception_ptr(
      DeviceError(effect, fmt::format("a copy from or to {} has failed: {}", card.name(), name_of_error(status))));
}

/// Layout of the bytes of a matrix on both sides.
struct Extent {
  explicit Extent(const CopyRequest& request)
      : column_bytes(request.shape.rows * request.shape.element_bytes),
        bytes(request.shape.bytes()),
        from_pitch(request.from_ld * request.shape.element_bytes),
        to_pitch(request.to_ld * request.shape.element_bytes),
        is_packed(request.shape.cols == 1 ||
                  (request.from_ld == request.shape.rows && request.to_ld == request.shape.rows)) {
    region[0] = column_bytes;
    region[1] = request.shape.cols;
  }
  std::size_t column_bytes, bytes, from_pitch, to_pitch;
  bool is_packed;
  std::size_t region[3] = {0, 0, 1};
};

constexpr std::size_t kOrigin[3] = {0, 0, 0};

cl_event read(const Buffer& from, void* to, const Extent& extent) {
  cl_event event = nullptr;
  const cl_command_queue queue = from.card->from_device();
  check(extent.is_packed ? clEnqueueReadBuffer(queue, from.memory, CL_FALSE, 0, extent.bytes, to, 0, nullptr, &event)
                         : clEnqueueReadBufferRect(queue, from.memory, CL_FALSE, kOrigin, kOrigin, extent.region,
                                                   extent.from_pitch, 0, extent.to_pitch, 0, to, 0, nullptr, &event),
        "a copy to main memory was refused");
  return event;
}

cl_event write(const void* from, const Buffer& to, const Extent& extent) {
  cl_event event = nullptr;
  const cl_command_queue queue = to.card->to_device();
  check(extent.is_packed ? clEnqueueWriteBuffer(queue, to.memory, CL_FALSE, 0, extent.bytes, from, 0, nullptr, &event)
                         : clEnqueueWriteBufferRect(queue, to.memory, CL_FALSE, kOrigin, kOrigin, extent.region,
                                                    extent.to_pitch, 0, extent.from_pitch, 0, from, 0, nullptr, &event),
        "a copy to the device was refused");
  return event;
}

/// Copies between devices; both replicas are packed.
void copy_between(const Buffer& from, const Buffer& to, const Extent& extent, CopyEnded ended) {
  const auto between = std::make_shared<std::vector<char>>(extent.bytes);
  from.card->when_ended(from.card->from_device(), read(from, between->data(), extent),
                        [&from, &to, extent, between, ended](cl_int status) {
                          std::exception_ptr failure = failure_of(status, *from.card);
                          if (failure == nullptr) {
                            try {
                              return to.card->when_ended(
                                  to.card->to_device(), write(between->data(), to, extent),
                                  [&to, between, ended](cl_int written) { ended(failure_of(written, *to.card)); });
                            } catch (...) {
                              failure = std::current_exception();
                            }
                          }
                          ended(failure);
                        });
}

}  // namespace

void* OpenClMemory::allocate(std::size_t bytes) {
  cl_int error = CL_SUCCESS;
  const cl_mem memory =
      clCreateBuffer(card_->context(), CL_MEM_READ_WRITE, std::max<std::size_t>(bytes, 1), nullptr, &error);
  if (error != CL_SUCCESS) return nullptr;
  auto* const buffer = new Buffer{memory, card_.get(), bytes};
  card_->buffers().add(buffer);
  return buffer;
}

void OpenClMemory::release(void* memory, std::size_t) noexcept {
  const std::unique_ptr<Buffer> buffer(static_cast<Buffer*>(memory));
  card_->buffers().remove(buffer.get());
  clReleaseMemObject(buffer->memory);
}

CopyState OpenClCopier::start(const CopyRequest& request, CopyEnded ended) {
  if (request.shape.bytes() == 0) return CopyState::done;
  const Extent extent(request);
  const Buffer* const from = card_->buffers().find(request.from);
  const Buffer* const to = card_->buffers().find(request.to);
  if (from != nullptr && to != nullptr) {
    copy_between(*from, *to, extent, std::move(ended));
  } else if (from != nullptr) {
    from->card->when_ended(
        from->card->from_device(), read(*from, request.to, extent),
        [card = from->card, ended = std::move(ended)](cl_int status) { ended(failure_of(status, *card)); });
  } else {
    TANDEM_ASSERT(to != nullptr);
    to->card->when_ended(
        to->card->to_device(), write(request.from, *to, extent),
        [card = to->card, ended = std::move(ended)](cl_int status) { ended(failure_of(status, *card)); });
  }
  return CopyState::posted;
}

}  // namespace tandem::runtime::opencl
