// tandem/runtime/submit/user_memory.hpp: the user's memory of each datum, so that no two data share any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

/// The user's memory of registered data. Two pieces of data over the same bytes would be written by tasks that do not
/// know of each other. Used by the submitting thread.
///
/// It finds overlapping columns among matrices of one distance of columns, since tiles of one matrix interleave without
/// sharing bytes; otherwise overlaps of contiguous memory (vectors, values, the first column of a matrix). All entries
/// are disjoint, so each question looks at neighbours only: O(log n), and O(1) for contiguous data that is added or
/// removed in the order of its addresses, as programs do.
class UserMemory {
 public:
  UserMemory() = default;
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  /// Adds `data`, and returns null; or returns the data that shares bytes with it.
  Handle* add(Handle& data);
  void remove(const Handle& data) noexcept;

 private:
  using Address = std::uintptr_t;
  struct Columns {
    Address begin = 0;
    std::size_t bytes = 0;   ///< bytes of one column
    std::size_t count = 0;
    std::size_t stride = 0;  ///< bytes from one column to the next; 0: one piece
  };
  struct Grid {
    std::map<std::size_t, std::map<Address, Handle*>> by_offset;  ///< address modulo the stride, then address
    std::size_t longest = 0;                                      ///< most bytes of a column so far
  };

  struct Piece {
    Address end = 0;
    Handle* data = nullptr;
  };
  using Pieces = std::map<Address, Piece>;

  static Columns columns_of(const Handle& data) noexcept;
  static bool overlap(const Columns& a, const Columns& b) noexcept;
  Handle* overlapping_in(const Grid& grid, const Columns& columns) const;
  Pieces::iterator first_from(Address begin) noexcept;

  Pieces pieces_;                              ///< first columns by address
  Pieces::iterator recent_ = pieces_.begin();  ///< near the last change
  std::map<std::size_t, Grid> matrices_;  ///< matrices with gaps between columns, by stride
};

}  // namespace tandem::runtime
