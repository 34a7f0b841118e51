// benchmarks/pingpong/peer_pingpong_ucx.cpp: ping-pong on UCX's tagged messages.
//
// --transport: shm (posix, with cross-memory attach for large messages), tcp.
#include <ucp/api/ucp.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/pingpong/harness.hpp"
#include "benchmarks/pingpong/pair.hpp"

namespace benchmarks::pingpong {
namespace {

void check(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
  std::_Exit(1);
}

class UcxAdapter {
 public:
  static constexpr const char* name = "ucx";

  UcxAdapter(Pair& pair, const std::string& transport) : rank_(pair.rank()) {
    ucp_config_t* configuration = nullptr;
    check(ucp_config_read(nullptr, nullptr, &configuration), "ucp_config_read");
    check(ucp_config_modify(configuration, "TLS", transport == "tcp" ? "tcp,self" : "posix,cma,self"), "UCX_TLS");
    if (transport == "tcp") check(ucp_config_modify(configuration, "NET_DEVICES", "lo"), "UCX_NET_DEVICES");
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_TAG;
    check(ucp_init(&parameters, configuration, &context_), "ucp_init");
    ucp_config_release(configuration);
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    check(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
    pair.send({reinterpret_cast<const char*>(address), bytes});
    ucp_worker_release_address(worker_, address);
    const std::string other = pair.receive();
    ucp_ep_params_t endpoint{};
    endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    endpoint.address = reinterpret_cast<const ucp_address_t*>(other.data());
    check(ucp_ep_create(worker_, &endpoint, &endpoint_), "ucp_ep_create");
  }

  std::string version() const { return ucp_get_version_string(); }
  unsigned rank() const { return rank_; }
  void send(const void* data, std::size_t bytes) { finish(post_send(data, bytes)); }
  void receive(void* data, std::size_t bytes) { finish(post_receive(data, bytes)); }
  void send_many(const void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) requests_.push_back(post_send(data, bytes));
    finish_all();
  }
  void receive_many(void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) requests_.push_back(post_receive(data, bytes));
    finish_all();
  }
  void send_stream(const void* data, std::size_t bytes, unsigned count, unsigned window) {
    slide(requests_, count, window, [&] { return post_send(data, bytes); }, [&](ucs_status_ptr_t one) { finish(one); });
  }
  void receive_stream(void* data, std::size_t bytes, unsigned count, unsigned window) {
    slide(requests_, count, window, [&] { return post_receive(data, bytes); },
          [&](ucs_status_ptr_t one) { finish(one); });
  }

 private:
  ucs_status_ptr_t post_send(const void* data, std::size_t bytes) {
    const ucp_request_param_t parameters{};
    return ucp_tag_send_nbx(endpoint_, data, bytes, 1, &parameters);
  }
  ucs_status_ptr_t post_receive(void* data, std::size_t bytes) {
    const ucp_request_param_t parameters{};
    return ucp_tag_recv_nbx(worker_, data, bytes, 1, ~ucp_tag_t{0}, &parameters);
  }
  void finish(ucs_status_ptr_t request) {
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), "posting");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }
  void finish_all() {
    for (const auto request : requests_) finish(request);
    requests_.clear();
  }

  unsigned rank_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<ucs_status_ptr_t> requests_;
};

}  // namespace
}  // namespace benchmarks::pingpong

int main(int argc, char** argv) {
  using namespace benchmarks::pingpong;
  const Plan plan(argc, argv);
  if (plan.sleep) {
    std::fprintf(stderr, "this program does not sleep\n");
    return 2;
  }
  Pair pair;
  benchmarks::pingpong::bind_as_planned(plan, pair.rank());
  UcxAdapter adapter(pair, plan.transport);
  measure(adapter, plan);
  pair.meet();
  // The processes end as they are: what the worker owns goes with them.
  const int status = pair.end();
  std::fflush(stdout);
  std::_Exit(status);
}
