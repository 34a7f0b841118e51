// tandem/api/tiles.cpp: numbers and names of tiles.
#include "tandem/api/tiles.hpp"

#include <algorithm>

#include "tandem/api/runtime.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/runtime/submit/data_registry.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::internal {

TileRegistry::TileRegistry(Runtime& rt, std::string name, TileGrid grid, std::size_t element_bytes)
    : runtime_(&rt), name_(std::move(name)), grid_(std::move(grid)), element_bytes_(element_bytes) {
  if (grid_.tile_rows == 0 || grid_.tile_cols == 0)
    throw UsageError("tiles '" + name_ + "' (at " + runtime::describe(grid_.where) +
                     ") have no rows or no columns: give tile_rows and tile_cols");
  const auto refuse = [&](const std::string& why) {
    throw UsageError("tiles '" + name_ + "' (at " + runtime::describe(grid_.where) + "): " + why);
  };
  if (row_tiles() > kMostTiles / std::max<std::size_t>(col_tiles(), 1))
    refuse("a matrix of " + std::to_string(grid_.rows) + " x " + std::to_string(grid_.cols) + " elements has " +
           std::to_string(row_tiles()) + " x " + std::to_string(col_tiles()) + " of them, more than the " +
           std::to_string(kMostTiles) + " that have numbers; make them larger");
  const runtime::Shape largest{std::min(grid_.tile_rows, grid_.rows), std::min(grid_.tile_cols, grid_.cols),
                               element_bytes};
  if (const std::string why = runtime::why_too_large(largest); !why.empty()) refuse(why);
  first_ = rt.reserve_tiles(*this, element_bytes);
}

runtime::Handle* TileRegistry::add(std::size_t i, std::size_t j, const std::type_info& type) const {
  const runtime::Shape shape{std::min(grid_.tile_rows, grid_.rows - i * grid_.tile_rows),
                             std::min(grid_.tile_cols, grid_.cols - j * grid_.tile_cols), element_bytes_};
  DataOptions options{.where = grid_.where};
  if (grid_.owner) options.owner = grid_.owner(i, j);
  return runtime_->allocate_tile(name_ + "(" + std::to_string(i) + "," + std::to_string(j) + ")", shape, type, options,
                                 first_ + base::narrow<std::uint32_t>(index(i, j)));
}

void TileRegistry::refuse(std::size_t i, std::size_t j) const {
  throw UsageError("tiles '" + name_ + "' have no tile (" + std::to_string(i) + "," + std::to_string(j) +
                   "): there are " + std::to_string(row_tiles()) + " x " + std::to_string(col_tiles()));
}

}  // namespace tandem::internal
