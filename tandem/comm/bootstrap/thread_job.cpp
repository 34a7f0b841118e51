// tandem/comm/bootstrap/thread_job.cpp: a table and a condition variable.
#include "tandem/comm/bootstrap/thread_job.hpp"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/card_directory.hpp"
#include "tandem/comm/bootstrap/secret.hpp"

namespace tandem::comm {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

using internal::Entry;

/// The entries of all ranks. Thread-safe: `mutex` guards them.
struct Table {
  explicit Table(std::uint32_t ranks) : size(ranks) {}
  const std::uint32_t size;
  std::mutex mutex;
  std::condition_variable published;
  std::map<std::pair<Rank, Entry>, std::string> entries;
};

class TableStore final : public internal::CardStore {
 public:
  TableStore(std::shared_ptr<Table> table, Rank self, std::int64_t timeout_ns)
      : table_(std::move(table)), self_(self), timeout_ns_(timeout_ns) {}

  Result<void> put(Entry entry, const std::string& bytes) override {
    const std::scoped_lock lock(table_->mutex);
    table_->entries[{self_, entry}] = bytes;
    table_->published.notify_all();
    return {};
  }

  Result<std::string> get(Entry entry, Rank peer, std::int64_t timeout_ns) override {
    if (timeout_ns == 0) timeout_ns = timeout_ns_;
    std::unique_lock lock(table_->mutex);
    const std::pair key(peer, entry);
    const auto over = [&] { return table_->entries.contains(key) || gave_up_; };
    table_->published.wait_for(lock, std::chrono::nanoseconds(timeout_ns), over);
    if (const auto found = table_->entries.find(key); found != table_->entries.end()) return found->second;
    if (gave_up_)
      return Error{ErrorCode::io,
                   fmt::format("rank {} leaves, and looks for rank {} no more", self_.value(), peer.value())};
    return Error{ErrorCode::exhausted, fmt::format("rank {} waited {} ms for rank {}, which has not published",
                                                   self_.value(), timeout_ns / 1'000'000, peer.value())};
  }

  std::int64_t patience_ns() const override { return timeout_ns_; }
  std::vector<Rank> missing() override {
    const std::scoped_lock lock(table_->mutex);
    std::vector<Rank> ranks;
    for (std::uint32_t rank = 0; rank < table_->size && ranks.size() < 64; ++rank)
      if (!table_->entries.contains({Rank(rank), Entry::card})) ranks.emplace_back(rank);
    return ranks;
  }

  void give_up() override {
    const std::scoped_lock lock(table_->mutex);
    gave_up_ = true;
    table_->published.notify_all();
  }

 private:
  const std::shared_ptr<Table> table_;
  const Rank self_;
  const std::int64_t timeout_ns_;
  bool gave_up_ = false;  ///< guarded by the table's mutex
};

}  // namespace

std::vector<Job> make_thread_job(std::uint32_t size, std::int64_t timeout_ns) {
  JobSecret secret;
  std::memcpy(secret.data(), internal::random_bytes(secret.size()).data(), secret.size());
  const std::string id = "threads-" + internal::random_name(4);
  const auto table = std::make_shared<Table>(size);
  std::vector<Job> jobs;
  for (std::uint32_t i = 0; i < size; ++i) {
    const Rank rank(i);
    auto store = std::make_unique<TableStore>(table, rank, timeout_ns);
    jobs.push_back({rank, size, secret, id, "threads",
                    std::make_shared<internal::CardDirectory>(std::move(store), rank, size), size});
  }
  return jobs;
}

}  // namespace tandem::comm
