// tandem/dist/job_abort.cpp: messages that say why the job ends.
#include "tandem/dist/job_abort.hpp"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/agreement.hpp"
#include "tandem/dist/transfers.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

JobAbort::JobAbort(runtime::RuntimeCore& core, comm::Endpoint& endpoint, Transfers& transfers)
    : core_(core), endpoint_(endpoint), transfers_(transfers) {}

void JobAbort::listen(std::function<void()> release) {
  release_ = std::move(release);
  transfers_.on_abort([this](const std::string& text) { spread(text); });
  transfers_.on_loss([this](const std::string& text) { note_loss(text); });
  endpoint_.register_rpc(endpoint_.channel("tandem.dist.abort"),
                         {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                          .done = [this](const comm::Status& status) {
                            if (status.ending != comm::Ending::done) return;
                            const auto* text = reinterpret_cast<const char*>(status.owned.data());
                            transfers_.abort(std::string(text, status.owned.size()));
                          }});
  endpoint_.on_peer_death([this](base::Rank peer, std::string_view reason) {
    note_loss(fmt::format("rank {} died: {}", peer.value(), reason));
  });
}

void JobAbort::work_until(const std::atomic<bool>& done) {
  struct Context {
    const std::atomic<bool>& done;
    const std::atomic<bool>& aborted;
  } context{done, aborted_};
  core_.loop().run_until(
      [](void* what) {
        const auto& waits = *static_cast<Context*>(what);
        return waits.done.load() || waits.aborted.load();
      },
      &context);
}

void JobAbort::throw_if_aborted() {
  const std::exception_ptr why = transfers_.aborted();
  if (why == nullptr) return;
  reported_ = true;
  std::rethrow_exception(why);
}

void JobAbort::spread(const std::string& text) {
  aborted_.store(true);
  release_();
  // The links are closed once every message has left: nobody will complete what is under way.
  const std::uint32_t rank = endpoint_.rank().value(), size = endpoint_.size();
  const auto missing = std::make_shared<std::atomic<std::uint32_t>>(size);
  const auto ended = [this, missing] {
    if (missing->fetch_sub(1) == 1) endpoint_.abandon();
  };
  for (std::uint32_t step = 1; step < size; ++step) send((rank + step) % size, text, ended);
  ended();
  core_.executor().caller().wake();
}

void JobAbort::note_loss(const std::string& text) {
  send(endpoint_.rank().value(), text, [] {});
}

void JobAbort::send(std::uint32_t to, const std::string& text, const std::function<void()>& ended) {
  const auto kept = std::make_shared<std::string>(text);
  const auto done = [kept, ended](const comm::Status&) { ended(); };
  endpoint_.isend(base::Rank(to), comm::Tag(0), comm::SendBuffer(kept->data(), kept->size()),
                  {.channel = endpoint_.channel("tandem.dist.abort"), .priority = Agreement::kPriority,
                   .callbacks = {.released = done, .failed = done}});
}

}  // namespace tandem::dist
