// tools/standard_output.hpp: what the command prints arrives, or the command says that it did not, and fails.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/result.hpp"

namespace tandem::tools {

// Subcommands print by `fmt::print`, which throws std::system_error when a buffer cannot be written, or by `write_output`. What is
// left in the buffer at the end is written by `finish_output`, which main() calls in any case.

/// To standard output. Throws std::system_error.
void write_output(std::string_view text);

/// Writes what is left, of C++'s streams, too. Errors: io, for all of the output up to here: which file, and the cause. `cause`: the
/// error number of a write that has failed before, 0 when it is not known.
base::Result<void> finish_output(int cause = 0);

/// "standard output (/home/me/results.json)", "standard output (closed)", or "standard output" of a pipe.
std::string name_of_standard(int descriptor);

void write_note(std::string_view text) noexcept;

/// To standard error: progress and remarks. That nobody can read them is no failure of the command.
template <class... Values>
void print_note(fmt::format_string<Values...> format, Values&&... values) {
  write_note(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace tandem::tools
