// tandem/comm/bootstrap/card_directory.hpp: the Directory that all launchers share, above the store of its bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/base/fork.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

/// What a rank publishes, each once: how it can be reached, and which cores its process may use.
enum class Entry : std::uint8_t { card, place };
inline constexpr std::uint8_t entry_kinds = 2;

/// A store of entries as bytes: the rendezvous of `tandem run`, PMIx, the memory of one process. Thread-safe.
class CardStore {
 public:
  virtual ~CardStore() = default;
  virtual base::Result<void> put(Entry entry, const std::string& bytes) = 0;  ///< this rank's own
  /// Waits for an entry for `timeout_ns` at most; 0: as long as joining may take. Errors: as `Directory::lookup`.
  virtual base::Result<std::string> get(Entry entry, Rank peer, std::int64_t timeout_ns) = 0;
  /// How long joining, and each look-up of an address, may take.
  virtual std::int64_t patience_ns() const = 0;
  virtual std::vector<Rank> missing() = 0;                                    ///< as `Directory::missing`
  virtual void give_up() {}                                                   ///< as `Directory::give_up`
};

/// Reads and writes addresses, refuses those of builds with another wire format, and remembers the others: a peer is
/// asked for once.
///
/// Thread-safe. `mutex_` guards the fields below it and is not held while the store waits, so that a late peer does not
/// delay other look-ups.
class CardDirectory final : public Directory {
 public:
  CardDirectory(std::unique_ptr<CardStore> store, Rank self, std::uint32_t size)
      : store_(std::move(store)), self_(self), size_(size) {}
  /// In a child by fork() the store stays as it is: its threads are missing.
  ~CardDirectory() override {
    if (!made_here_.is_of_this_process()) (void)store_.release();
  }

  /// A second address is an error (invalid_argument): peers may have read the first.
  base::Result<void> publish(const PeerCard& card) override;
  /// Errors, beside those of Directory: invalid_argument (no such rank, or called before publish), unsupported (other
  /// wire format), malformed.
  base::Result<PeerCard> lookup(Rank peer) override;
  std::optional<base::Result<PeerCard>> lookup_now(Rank peer) override;
  std::optional<base::Result<PeerCard>> lookup_for(Rank peer, std::int64_t slice_ns) override;
  base::Result<void> publish_place(const std::string& bytes) override { return store_->put(Entry::place, bytes); }
  base::Result<std::string> lookup_place(Rank peer, std::int64_t timeout_ns) override {
    return store_->get(Entry::place, peer, timeout_ns);
  }
  std::vector<Rank> missing() override { return store_->missing(); }
  void give_up() override { store_->give_up(); }

 private:
  base::Result<PeerCard> take(Rank peer, const std::string& bytes);
  base::Result<PeerCard> read(Rank peer, const std::string& bytes, const PeerCard& own) const;

  const base::ProcessMark made_here_;
  std::unique_ptr<CardStore> store_;  ///< changed by the destructor alone
  const Rank self_;
  const std::uint32_t size_;
  std::mutex mutex_;
  std::unique_ptr<PeerCard> own_;  ///< null before publish()
  std::map<Rank, PeerCard> known_;
  std::map<Rank, std::chrono::steady_clock::time_point>
      asked_;  ///< time of the first `lookup_for` of each unknown peer
};

}  // namespace tandem::comm::internal
