// tandem/runtime/submit/user_memory.cpp: finds overlaps among neighbours.
#include "tandem/runtime/submit/user_memory.hpp"

#include <algorithm>
#include <iterator>

namespace tandem::runtime {

UserMemory::Columns UserMemory::columns_of(const Handle& data) noexcept {
  const Shape& shape = data.shape;
  const auto begin = reinterpret_cast<Address>(data.home.pointer);
  if (data.is_strided_at_home()) {
    const Layout::Pieces pieces = data.layout->pieces();
    return {begin, pieces.bytes, pieces.count, pieces.stride};
  }
  const std::size_t column = shape.rows * shape.element_bytes;
  const bool packed = shape.cols == 1 || data.home.ld == shape.rows;
  if (packed) return {begin, shape.bytes(), 1, 0};
  return {begin, column, shape.cols, data.home.ld * shape.element_bytes};
}

/// Whether two matrices of one stride overlap: column i of `a` and column j of `b` are at a distance of d + (j - i)
/// strides.
bool UserMemory::overlap(const Columns& a, const Columns& b) noexcept {
  const auto stride = static_cast<std::ptrdiff_t>(a.stride);
  const auto distance = static_cast<std::ptrdiff_t>(b.begin - a.begin);
  const std::ptrdiff_t nearest = -distance / stride;
  for (std::ptrdiff_t k = nearest - 1; k <= nearest + 1; ++k) {
    const std::ptrdiff_t apart = distance + k * stride;
    const bool exists = k > -static_cast<std::ptrdiff_t>(a.count) && k < static_cast<std::ptrdiff_t>(b.count);
    if (exists && apart < static_cast<std::ptrdiff_t>(a.bytes) && -apart < static_cast<std::ptrdiff_t>(b.bytes))
      return true;
  }
  return false;
}

/// The first piece that begins at or behind `begin`.
UserMemory::Pieces::iterator UserMemory::first_from(Address begin) noexcept {
  const auto is_first = [&](Pieces::iterator at) {
    return (at == pieces_.end() || at->first >= begin) && (at == pieces_.begin() || std::prev(at)->first < begin);
  };
  if (is_first(recent_)) return recent_;
  if (recent_ != pieces_.end() && is_first(std::next(recent_))) return std::next(recent_);
  if (recent_ != pieces_.begin() && is_first(std::prev(recent_))) return std::prev(recent_);
  return pieces_.lower_bound(begin);
}

Handle* UserMemory::overlapping_in(const Grid& grid, const Columns& columns) const {
  const auto look_at = [&](std::size_t from, std::size_t to) -> Handle* {
    for (auto row = grid.by_offset.lower_bound(from); row != grid.by_offset.end() && row->first < to; ++row) {
      // Entries of one offset are disjoint rows of columns: only the last one before, and those that begin inside, can
      // overlap.
      const auto& in_row = row->second;
      auto at = in_row.upper_bound(columns.begin);
      if (at != in_row.begin()) --at;
      const Address end = columns.begin + columns.count * columns.stride;
      for (; at != in_row.end() && at->first < end + columns.stride; ++at)
        if (overlap(columns_of(*at->second), columns)) return at->second;
    }
    return nullptr;
  };
  const std::size_t offset = columns.begin % columns.stride;
  const std::size_t from = offset > grid.longest ? offset - grid.longest : 0;
  const std::size_t to = offset + columns.bytes;
  if (Handle* const found = look_at(from, to)) return found;
  // A column may begin near the end of a stride and end in the next one.
  if (offset < grid.longest)
    if (Handle* const found = look_at(offset + columns.stride - grid.longest, columns.stride)) return found;
  return to > columns.stride ? look_at(0, to - columns.stride) : nullptr;
}

Handle* UserMemory::add(Handle& data) {
  const Columns columns = columns_of(data);
  if (columns.bytes == 0 || columns.count == 0) return nullptr;
  const bool in_grid = columns.stride != 0;
  const auto known = in_grid ? matrices_.find(columns.stride) : matrices_.end();
  if (known != matrices_.end())
    if (Handle* const found = overlapping_in(known->second, columns)) return found;
  const Address end = columns.begin + columns.bytes;
  const auto after = first_from(columns.begin);
  if (after != pieces_.end() && after->first < end) return after->second.data;
  if (after != pieces_.begin())
    if (const Piece& before = std::prev(after)->second; before.end > columns.begin) return before.data;

  if (in_grid) {
    Grid& grid = matrices_[columns.stride];
    grid.by_offset[columns.begin % columns.stride].emplace(columns.begin, &data);
    grid.longest = std::max(grid.longest, columns.bytes);
  }
  recent_ = pieces_.emplace_hint(after, columns.begin, Piece{end, &data});
  return nullptr;
}

void UserMemory::remove(const Handle& data) noexcept {
  const Columns columns = columns_of(data);
  if (const auto piece = first_from(columns.begin); piece != pieces_.end() && piece->second.data == &data)
    recent_ = pieces_.erase(piece);
  const auto grid = columns.stride == 0 ? matrices_.end() : matrices_.find(columns.stride);
  if (grid == matrices_.end()) return;
  const auto row = grid->second.by_offset.find(columns.begin % columns.stride);
  if (row == grid->second.by_offset.end()) return;
  const auto at = row->second.find(columns.begin);
  if (at != row->second.end() && at->second == &data) row->second.erase(at);
  if (row->second.empty()) grid->second.by_offset.erase(row);
  if (grid->second.by_offset.empty()) matrices_.erase(grid);
}

}  // namespace tandem::runtime
