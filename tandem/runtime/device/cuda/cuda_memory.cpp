// tandem/runtime/device/cuda/cuda_memory.cpp: copies by CUDA.
#include "tandem/runtime/device/cuda/cuda_memory.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::runtime::cuda {

namespace {

Address address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

std::size_t column_bytes(const Shape& shape) { return shape.rows * shape.element_bytes; }

bool is_packed(const CopyRequest& request) {
  return request.shape.cols == 1 || (request.from_ld == request.shape.rows && request.to_ld == request.shape.rows);
}

/// Copy of the columns of a matrix that is not packed.
Copy2D columns_of(const CopyRequest& request) {
  Copy2D copy;
  copy.width_bytes = column_bytes(request.shape);
  copy.height = request.shape.cols;
  copy.from_pitch = request.from_ld * request.shape.element_bytes;
  copy.to_pitch = request.to_ld * request.shape.element_bytes;
  return copy;
}

Status copy_to_device(const Card& card, const CopyRequest& request, Stream stream) {
  const Driver& driver = card.driver();
  if (is_packed(request))
    return driver.copy_to_device(address_of(request.to), request.from, request.shape.bytes(), stream);
  Copy2D copy = columns_of(request);
  copy.from_type = kMemoryHost;
  copy.from_host = request.from;
  copy.to_type = kMemoryDevice;
  copy.to_device = address_of(request.to);
  return driver.copy_2d(&copy, stream);
}

Status copy_to_host(const Card& card, const CopyRequest& request, Stream stream) {
  const Driver& driver = card.driver();
  if (is_packed(request))
    return driver.copy_to_host(request.to, address_of(request.from), request.shape.bytes(), stream);
  Copy2D copy = columns_of(request);
  copy.from_type = kMemoryDevice;
  copy.from_device = address_of(request.from);
  copy.to_type = kMemoryHost;
  copy.to_host = request.to;
  return driver.copy_2d(&copy, stream);
}

/// Copies between devices; both replicas are packed.
Status copy_between(const Card& from, const Card& to, const CopyRequest& request, Stream stream) {
  return from.driver().copy_peer(address_of(request.to), to.context(), address_of(request.from), from.context(),
                                 request.shape.bytes(), stream);
}

/// Whether the driver knows this main memory as page-locked, so that the device copies from and to it by itself.
bool is_page_locked(const Driver& driver, const void* memory) {
  int type = 0;
  return driver.pointer_attribute(&type, kPointerMemoryType, address_of(memory)) == kSuccess && type == kMemoryHost;
}

/// `request` with `memory`, which has the data packed, as its source or target.
CopyRequest with_packed(CopyRequest request, void* memory, bool as_source) {
  if (as_source) {
    request.from = memory;
    request.from_ld = request.shape.rows;
  } else {
    request.to = memory;
    request.to_ld = request.shape.rows;
  }
  return request;
}

}  // namespace

/// Page-locked memory through which `request` goes; null: it goes directly.
std::shared_ptr<void> CudaCopier::stage_for(const Card& card, const CopyRequest& request, bool to_device) const {
  if (page_locked_ == nullptr || is_packed(request)) return {};
  const Within within(card.driver(), card.context());
  if (is_page_locked(card.driver(), to_device ? request.from : request.to)) return {};
  const std::size_t bytes = request.shape.bytes();
  void* const memory = page_locked_->allocate(bytes);
  if (memory == nullptr) return {};
  return {memory, [pool = page_locked_, bytes](void* locked) { pool->release(locked, bytes); }};
}

CopyState CudaCopier::start(const CopyRequest& request, CopyEnded ended) {
  if (request.shape.bytes() == 0) return CopyState::done;
  Card* const from = card_->owners().find(request.from);
  Card* const to = card_->owners().find(request.to);
  TANDEM_ASSERT(from != nullptr || to != nullptr);
  Lane& lane = from != nullptr ? from->from_device() : to->to_device();
  const Card& card = from != nullptr ? *from : *to;
  const bool to_device = from == nullptr;
  std::shared_ptr<void> stage = from != nullptr && to != nullptr ? nullptr : stage_for(card, request, to_device);
  Lane::Begin begin = [from, to, request, stage, to_device, stream = lane.stream()] {
    if (from != nullptr && to != nullptr) return copy_between(*from, *to, request, stream);
    if (stage != nullptr && to_device) copy_matrix(with_packed(request, stage.get(), false));
    const CopyRequest direct = stage != nullptr ? with_packed(request, stage.get(), to_device) : request;
    return to_device ? copy_to_device(*to, direct, stream) : copy_to_host(*from, direct, stream);
  };
  // The staging memory is released before the end is reported.
  lane.post(std::move(begin), [&card, request, stage = std::move(stage), to_device, ended = std::move(ended)](
                                  Status status, std::int64_t) mutable {
    if (stage != nullptr && !to_device && status == kSuccess) copy_matrix(with_packed(request, stage.get(), true));
    stage.reset();
    ended(status == kSuccess
              ? nullptr
              : card.driver().failure_of(status, fmt::format("a copy from or to {} has failed", card.name()), false));
  });
  return CopyState::posted;
}

}  // namespace tandem::runtime::cuda
