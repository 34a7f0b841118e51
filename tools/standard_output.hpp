// tools/standard_output.hpp: writes the command's output, and makes the command fail if it does not arrive.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/result.hpp"

namespace tandem::tools {

// Subcommands print by `fmt::print`, which throws std::system_error when a buffer cannot be written, or by
// `write_output`. main() always calls `finish_output`, which writes the rest of the buffer.

/// Writes to standard output. Throws std::system_error.
void write_output(std::string_view text);

/// Writes the rest of the output, also that of C++'s streams. Errors: io, for all of the output up to here: which file,
/// and the cause. `cause`: the error number of a write that has failed before; 0: not known.
base::Result<void> finish_output(int cause = 0);

/// The name of standard output in messages: "standard output (/home/me/results.json)", "standard output (closed)", or
/// "standard output" of a pipe.
std::string name_of_standard(int descriptor);

void write_note(std::string_view text) noexcept;

/// Writes progress and remarks to standard error. A failure to write them is no failure of the command.
template <class... Values>
void print_note(fmt::format_string<Values...> format, Values&&... values) {
  write_note(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace tandem::tools
