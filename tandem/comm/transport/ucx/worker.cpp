// tandem/comm/transport/ucx/worker.cpp: opening a UCP worker.
#include "tandem/comm/transport/ucx/worker.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace tandem::comm::internal::ucx {
namespace {

using base::Error;
using base::Result;

/// UCX's configuration from the environment, with the changes of the options.
Result<ucp_config_t*> read_configuration(const UcxOptions& options) {
  ucp_config_t* configuration = nullptr;
  if (const ucs_status_t status = ucp_config_read(nullptr, nullptr, &configuration); status != UCS_OK) {
    return ucx_error("reading its configuration", status, "check the UCX_ variables of the environment");
  }
  const auto change = [&](const char* name, const std::string& value) {
    return value.empty() ? UCS_OK : ucp_config_modify(configuration, name, value.c_str());
  };
  const auto unsaid = [](const char* variable) { return std::getenv(variable) == nullptr; };
  ucs_status_t status = change("TLS", options.transports.empty() && unsaid("UCX_TLS") ? "^sm" : options.transports);
  if (status == UCS_OK) status = change("NET_DEVICES", options.devices);
  // All network cards of a host carry a large message; UCX by itself uses two.
  if (status == UCS_OK && unsaid("UCX_MAX_RNDV_RAILS")) status = change("MAX_RNDV_RAILS", "4");
  // UCX asks idle endpoints every 20 s whether they live; a death that closes no connection should be noticed sooner.
  if (status == UCS_OK && unsaid("UCX_KEEPALIVE_INTERVAL")) status = change("KEEPALIVE_INTERVAL", "2s");
  if (status != UCS_OK) {
    ucp_config_release(configuration);
    return ucx_error(fmt::format("transports \"{}\" on devices \"{}\"", options.transports, options.devices), status,
                     "give lists as UCX_TLS and UCX_NET_DEVICES take them");
  }
  return configuration;
}

}  // namespace

Error ucx_error(std::string_view what, ucs_status_t status, std::string_view remedy) {
  const bool absent = status == UCS_ERR_NO_DEVICE || status == UCS_ERR_UNSUPPORTED;
  return {absent ? base::ErrorCode::unsupported : base::ErrorCode::io,
          fmt::format("UCX, {}: {}; {}", what, ucs_status_string(status), remedy)};
}

Result<std::unique_ptr<Worker>> Worker::open(const UcxOptions& options) {
  std::unique_ptr<Worker> worker(new Worker);
  if (auto opened = worker->open_context(options); !opened) return opened.error();
  if (auto opened = worker->open_worker(); !opened) return opened.error();
  return worker;
}

Result<void> Worker::open_context(const UcxOptions& options) {
  auto configuration = read_configuration(options);
  if (!configuration) return configuration.error();
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const ucs_status_t status = ucp_init(&parameters, configuration.value(), &context_);
  ucp_config_release(configuration.value());
  if (status != UCS_OK)
    return ucx_error("starting", status, "check UCX_TLS and UCX_NET_DEVICES, or use the transport tcp");
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  if (ucp_context_query(context_, &attributes) == UCS_OK) {
    knows_other_memory_ = (attributes.memory_types & ~UCS_BIT(UCS_MEMORY_TYPE_HOST)) != 0;
    knows_cuda_memory_ = (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
  }
  return {};
}

Result<void> Worker::open_worker() {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucp_worker_create(context_, &parameters, &worker_);
  if (status != UCS_OK)
    return ucx_error("making a worker", status, "check UCX_TLS and UCX_NET_DEVICES, or use the transport tcp");
  ucp_worker_attr_t attributes{};
  attributes.field_mask =
      UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  attributes.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
  status = ucp_worker_query(worker_, &attributes);
  if (status != UCS_OK) return ucx_error("asking for the worker's address", status, "use the transport tcp");
  address_.resize(attributes.address_length);
  std::memcpy(address_.data(), attributes.address, attributes.address_length);
  ucp_worker_release_address(worker_, attributes.address);
  max_header_bytes_ = attributes.max_am_header;
  status = ucp_worker_get_efd(worker_, &wait_descriptor_);
  if (status != UCS_OK)
    return ucx_error("asking for a descriptor to wait on", status, "choose transports that can wake a thread");
  return {};
}

Worker::~Worker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

}  // namespace tandem::comm::internal::ucx
