// tandem/api/own_codelets.hpp: the codelets of tasks with their own kernels, by name.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>

#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::internal {

/// The name of a task, and the line of the call that gives it.
struct TaskName {
  std::string_view text;  ///< empty: none
  SourceLine where;

  /// Makes a name from any text.
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view> TaskName(
      const Text& name, const std::source_location& line = std::source_location::current())
      : text(name), where(line) {}
  /// Makes an empty name.
  explicit TaskName(const SourceLine& line) : where(line) {}
};

/// The line of a call without further arguments.
struct Here {
  SourceLine line;
  Here(const std::source_location& where) : line(where) {}
};

/// The codelets of tasks whose kernels have one type: one for each name, so that statistics, traces and models
/// distinguish names. Types share the codelet of a name. The first name is at hand; another one that the thread has
/// used lately takes some 10 ns.
///
/// A type adds at most `kMostNames` names. A task with a further one gets the codelet of the first, so that a program
/// which gives each task another name costs bounded memory.
///
/// Threads: any. Codelets live as long as the process.
class OwnCodelets {
 public:
  static constexpr std::size_t kMostNames = 256;

  /// `name`: the first name; if empty, `line` is used; without both: "task".
  OwnCodelets(std::string_view name, const SourceLine& line);

  /// Codelet for a task of this name; if empty, of this line. Sets `is_shared` if the codelet has another name.
  const std::shared_ptr<runtime::CodeletCore>& of(std::string_view name, const SourceLine& line,
                                                  bool& is_shared) const {
    if (name.empty() ? is_named_by_ == line.line && line.file == file_ : name == first_->name) [[likely]] return first_;
    return other(name, line, is_shared);
  }

 private:
  static constexpr std::uint32_t kNamed = UINT32_MAX;

  const std::shared_ptr<runtime::CodeletCore>& other(std::string_view name, const SourceLine& line,
                                                     bool& is_shared) const;

  const std::shared_ptr<runtime::CodeletCore> first_;
  const char* const file_;             ///< file of the line after which the first one is called
  const std::uint32_t is_named_by_;  ///< number of that line; 0: not known; `kNamed`: it has a name
  mutable std::atomic<std::size_t> names_{1};  ///< names that this type has added; a count, which orders nothing
};

}  // namespace tandem::internal
