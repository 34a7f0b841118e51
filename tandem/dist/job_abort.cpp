// tandem/dist/job_abort.cpp: messages with the reason for which the job ends.
#include "tandem/dist/job_abort.hpp"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/agreement.hpp"
#include "tandem/dist/transfers.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

JobAbort::JobAbort(runtime::RuntimeCore& core, comm::Endpoint& endpoint, Transfers& transfers)
    : core_(core), endpoint_(endpoint), transfers_(transfers), told_by_(endpoint.rank().value()) {}

void JobAbort::listen(std::function<void()> release) {
  release_ = std::move(release);
  transfers_.on_abort([this](const std::string& text) { spread(text); });
  transfers_.on_loss([this](const std::string& text) { note_loss(text); });
  endpoint_.register_rpc(endpoint_.channel("tandem.dist.abort"),
                         {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                          .done = [this](const comm::Status& status) {
                            if (status.ending != comm::Ending::done) return;
                            const auto* text = reinterpret_cast<const char*>(status.owned.data());
                            if (!aborted()) told_by_.store(status.source.value());
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

/// The messages of one reason until they have left.
struct JobAbort::Round {
  std::shared_ptr<const std::string> text;
  std::mutex mutex;
  std::set<std::uint32_t> told;  ///< guarded by `mutex`
  std::atomic<std::uint32_t> missing{1};
};

void JobAbort::spread(const std::string& text) {
  aborted_.store(true);
  release_();
  const auto round = std::make_shared<Round>();
  round->text = std::make_shared<const std::string>(text);
  round->told = {endpoint_.rank().value(), told_by_.load()};
  for (const std::uint32_t other : Agreement::neighbours_of(endpoint_.rank().value(), endpoint_.size()))
    tell(round, other);
  for (const base::Rank other : endpoint_.connected_ranks()) tell(round, other.value());
  ended(round);
  core_.executor().caller().wake();
}

void JobAbort::tell(const std::shared_ptr<Round>& round, std::uint32_t to) {
  {
    const std::lock_guard guard(round->mutex);
    if (!round->told.insert(to).second) return;
  }
  round->missing.fetch_add(1);
  send(to, round->text, [this, round, to](const comm::Status& status) {
    if (status.ending == comm::Ending::peer_dead || status.ending == comm::Ending::peer_left) {
      for (const std::uint32_t next : Agreement::neighbours_of(to, endpoint_.size())) tell(round, next);
    }
    ended(round);
  });
}

/// Closes the links once every message has left: no operation under way completes any more.
void JobAbort::ended(const std::shared_ptr<Round>& round) {
  if (round->missing.fetch_sub(1) == 1) endpoint_.abandon();
}

void JobAbort::note_loss(const std::string& text) {
  send(endpoint_.rank().value(), std::make_shared<const std::string>(text), [](const comm::Status&) {});
}

void JobAbort::send(std::uint32_t to, const std::shared_ptr<const std::string>& text,
                    std::function<void(const comm::Status&)> ended) {
  const auto done = [text, ended = std::move(ended)](const comm::Status& status) { ended(status); };
  endpoint_.isend(base::Rank(to), comm::Tag(0), comm::SendBuffer(text->data(), text->size()),
                  {.channel = endpoint_.channel("tandem.dist.abort"), .priority = Agreement::kPriority,
                   .callbacks = {.released = done, .failed = done}});
}

}  // namespace tandem::dist
