// tandem/dist/data_table.hpp: all data of the flow, by the number that names them on every rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tandem::runtime {
class Handle;
}

namespace tandem::dist {

class Datum;

/// The registered data, in the order of the flow: a datum's id is the number of those before it. So an id means the
/// same data on all ranks. Ids may be reserved for data that a rank registers only if it uses it. A `Datum`, which only
/// travelling data needs, is made at the first transfer.
///
/// Threads: the submitting thread; any may call `for_each`. `mutex_` guards the handles against it: the end of a wait
/// removes unused data, while a diagnosis may read the names of all.
class DataTable {
 public:
  DataTable(std::uint32_t rank, std::uint32_t ranks);
  ~DataTable();
  DataTable(const DataTable&) = delete;
  DataTable& operator=(const DataTable&) = delete;

  /// Adds data that was just registered with the runtime. `has_value`: the owner has given it one. Throws UsageError.
  void add(runtime::Handle& handle, std::uint32_t owner, bool has_value);
  /// Reserves `count` ids, and returns the first. `digest` covers all that ranks must agree on. Throws UsageError.
  std::uint32_t reserve(std::size_t count, std::uint64_t digest);
  /// Adds data without a value, under a reserved id.
  void add_reserved(runtime::Handle& handle, std::uint32_t owner, std::uint32_t id);
  bool contains(runtime::Handle& handle) const noexcept;
  /// Called when the runtime forgets the data.
  void remove(runtime::Handle& handle);

  Datum& datum_of(runtime::Handle& handle);
  /// The datum of an id; null: the data has not travelled.
  Datum* find(std::uint32_t id);
  /// The handle of an id; null: the data was removed.
  runtime::Handle* handle(std::uint32_t id) const noexcept {
    const Block* const block = id < count_ ? blocks_[id / kBlock].get() : nullptr;
    return block != nullptr ? block->handles[id % kBlock] : nullptr;
  }

  /// Number of data so far, reserved and removed ones included.
  std::size_t count() const noexcept { return count_; }
  /// Calls `action(id, handle)` for the data that were not removed, by id. `action` must not add or remove data.
  template <class Action>
  void for_each(const Action& action) const {
    const std::lock_guard guard(mutex_);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      if (blocks_[block] == nullptr) continue;
      for (std::size_t i = 0; i < kBlock; ++i)
        if (runtime::Handle* const handle = blocks_[block]->handles[i]; handle != nullptr)
          action(static_cast<std::uint32_t>(block * kBlock + i), *handle);
    }
  }
  /// Number of kept blocks, for tests.
  std::size_t blocks() const noexcept;
  /// Digest of the owners, sizes and kinds of all data so far.
  std::uint64_t digest() const noexcept { return digest_; }
  const auto& travelled() const noexcept { return data_; }
  /// False: ids, blocks and travelled data do not agree.
  bool check_invariants() const;

 private:
  void put(runtime::Handle& handle, std::uint32_t owner, bool has_value, std::uint32_t id);

  /// Handles of consecutive ids. A block is freed when all its data are removed, since a program may register data
  /// without end.
  static constexpr std::size_t kBlock = 1024;
  struct Block {
    std::array<runtime::Handle*, kBlock> handles{};  ///< null: removed, or not registered here
    std::size_t live = 0;
  };

  const std::uint32_t rank_;
  const std::uint32_t ranks_;
  std::uint64_t digest_ = 0;
  std::size_t count_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;                      ///< null: none of its data is registered
  std::unordered_map<std::uint32_t, std::unique_ptr<Datum>> data_;  ///< data that has travelled, by id
};

}  // namespace tandem::dist
