// tandem/dist/data_table.hpp: all data of the flow, by the number that names them on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace tandem::runtime {
class Handle;
}

namespace tandem::dist {

class Datum;

/// The data that were registered, in the order of the flow: a datum's id is the number of those before it. So an id means the
/// same data on all ranks. What only data need that travel (`Datum`) is made when they first do.
///
/// Threads: the submitting thread.
class DataTable {
 public:
  DataTable(std::uint32_t rank, std::uint32_t ranks);
  ~DataTable();
  DataTable(const DataTable&) = delete;
  DataTable& operator=(const DataTable&) = delete;

  /// Data that was just registered with the runtime. `has_value`: the owner has given it one. Throws UsageError.
  void add(runtime::Handle& handle, std::uint32_t owner, bool has_value);
  bool contains(runtime::Handle& handle) const noexcept;
  /// The runtime forgets the data.
  void remove(runtime::Handle& handle);

  Datum& datum_of(runtime::Handle& handle);
  /// Null: data that has not travelled.
  Datum* find(std::uint32_t id);
  /// Null: data that was removed.
  runtime::Handle* handle(std::uint32_t id) const { return handles_[id]; }

  std::size_t count() const noexcept { return handles_.size(); }
  std::span<runtime::Handle* const> handles() const noexcept { return handles_; }
  /// Of owners, sizes and kinds of all data so far.
  std::uint64_t digest() const noexcept { return digest_; }
  const auto& travelled() const noexcept { return data_; }

 private:
  const std::uint32_t rank_;
  const std::uint32_t ranks_;
  std::uint64_t digest_ = 0;
  std::vector<runtime::Handle*> handles_;                           ///< by id; null once removed
  std::unordered_map<std::uint32_t, std::unique_ptr<Datum>> data_;  ///< by id
};

}  // namespace tandem::dist
