// tandem/dist/use.hpp: a task, as the flow of several ranks sees it.
#pragma once

#include <cstdint>
#include <optional>

#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::dist {

/// One use of data by a task.
struct Use {
  runtime::Handle* handle = nullptr;
  AccessMode mode = AccessMode::read;
};

/// What the program says of a task beside its data.
struct Wish {
  std::optional<std::uint32_t> on = {};  ///< the rank that runs it, instead of the owner; kEverywhere for one that only reads
  int priority = 0;
  SourceLine where = {};
  bool is_task = true;                   ///< false: an access of the application
  const runtime::CodeletCore* codelet = nullptr;  ///< of the task, adopted by the submission; null: not known
};

}  // namespace tandem::dist
