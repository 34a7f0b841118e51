// tandem/comm/transport/ucx/worker.hpp: one UCP context and worker, opened with the features that Tandem needs.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/comm/transport/ucx/ucx_transport.hpp"

namespace tandem::comm::internal::ucx {

/// Owner of a context and its only worker. Calls on the worker are serialised by the transport's caller.
class Worker {
 public:
  static base::Result<std::unique_ptr<Worker>> open(const UcxOptions& options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_worker_h handle() const noexcept { return worker_; }
  std::span<const std::byte> address() const noexcept { return address_; }
  std::size_t max_header_bytes() const noexcept { return max_header_bytes_; }
  int wait_descriptor() const noexcept { return wait_descriptor_; }
  bool knows_other_memory() const noexcept {
    return knows_other_memory_;
  }  ///< memory of devices, which memcpy may not touch
  bool knows_cuda_memory() const noexcept { return knows_cuda_memory_; }

 private:
  Worker() = default;
  base::Result<void> open_context(const UcxOptions& options);
  base::Result<void> open_worker();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<std::byte> address_;
  std::size_t max_header_bytes_ = 0;
  int wait_descriptor_ = -1;
  bool knows_other_memory_ = false;
  bool knows_cuda_memory_ = false;
};

/// An error of UCX as ours: `what` names the call, `remedy` what the user can do.
base::Error ucx_error(std::string_view what, ucs_status_t status, std::string_view remedy);

}  // namespace tandem::comm::internal::ucx
