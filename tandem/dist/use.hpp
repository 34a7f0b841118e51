// tandem/dist/use.hpp: a task in the view of the flow of several ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::dist {

/// One use of data by a task.
struct Use {
  runtime::Handle* handle = nullptr;
  AccessMode mode = AccessMode::read;
};

/// Wishes of the program for a task, besides its data.
struct Wish {
  /// Rank that runs the task, instead of the owner; kEverywhere for one that only reads.
  std::optional<std::uint32_t> on = {};
  int priority = 0;
  SourceLine where = {};
  bool is_task = true;                   ///< false: an access of the application
  const runtime::CodeletCore* codelet = nullptr;  ///< codelet of the task, adopted by the submission; null: not known
  std::span<const runtime::TaskRef> after = {};   ///< tasks of this rank that come first, whatever data they use
};

}  // namespace tandem::dist
