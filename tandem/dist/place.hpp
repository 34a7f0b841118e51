// tandem/dist/place.hpp: the place of a piece of data, which every rank derives from the flow; stored in the handle's
// own line.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::dist {

class Datum;

/// Owner of data that each rank has separately, and executor of tasks that run on every rank.
inline constexpr std::uint32_t kEverywhere = UINT32_MAX;
/// No rank.
inline constexpr std::uint32_t kNobody = UINT32_MAX - 1;

/// The knowledge of data by which a rank sees in a few instructions that a task does not concern it.
///
/// Every rank keeps the same owner, holder and version of data that it uses, because every rank goes through the same
/// flow. `holder` is the rank with the current version: the last one that wrote it, at first the owner.
///
/// A rank that skips tasks (`Pruning`) knows the owner of other ranks' data. It knows the holder and a lower bound of
/// the version as of the last writer that it has submitted, or of the last wait.
///
/// Threads: the submitting thread.
struct Place {
  std::uint32_t owner = kEverywhere;
  std::uint32_t holder = kEverywhere;
  std::uint32_t version = 0;    ///< number of writes in the flow
  std::uint32_t id = 0;         ///< number of data registered before it: its name on all ranks
  bool unwritten : 1 = false;       ///< the data has no value at this point of the flow
  bool copied : 1 = false;          ///< this rank, which is not the holder, has the current version or a receive for it
  bool reducing : 1 = false;        ///< some of its shares are not gathered yet (`Reductions`)
  bool in_users_memory : 1 = false;  ///< it is in the user's memory on its first owner
  bool always_here : 1 = false;     ///< this rank has always owned it, and so has seen all its versions
  bool stale : 1 = false;           ///< with `check_pruning`: this rank would have skipped its last writer
  Datum* datum = nullptr;       ///< null: the data has not travelled

  /// Whether a task that sees the data on another rank does not concern this one.
  bool untouched_by_reader(std::uint32_t here) const noexcept { return holder != here && !unwritten && !reducing; }
  /// Whether a task that writes the data on `executor`, another rank, changes only the version here.
  bool untouched_by_writer(std::uint32_t executor) const noexcept {
    return owner == executor && holder == executor && !copied && !reducing;
  }
  /// Notes that the flow writes the data.
  void note_written(std::uint32_t versions = 1) noexcept {
    version += versions;
    unwritten = false;
  }
};
static_assert(std::is_trivially_copyable_v<Place> && sizeof(Place) <= sizeof(runtime::Handle::above));

inline Place& place_of(runtime::Handle& handle) noexcept {
  return *std::launder(reinterpret_cast<Place*>(handle.above.data()));
}

}  // namespace tandem::dist
