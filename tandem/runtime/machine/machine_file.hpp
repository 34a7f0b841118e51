// tandem/runtime/machine/machine_file.hpp: a machine as a TOML file that people read and edit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/runtime/machine/machine.hpp"

namespace tandem::runtime {

/// @name Words of the file
/// Kinds of the program's own devices beyond the first are "user 1", "user 2" and so on.
/// @{
std::string_view word_of(NodeKind kind);
std::string_view word_of(LinkSource source);
std::string word_of(DeviceKind kind);
/// @}

/// Text of a machine's file. `parse_machine` reads the same machine, with rates to six digits; bytes of names that are
/// no UTF-8 become U+FFFD. `found_on` tells people which machine it is.
std::string to_text(const Machine& machine, std::string_view found_on = {});

/// Parses a machine's file: each memory, link, network and worker in a table of its own. A row of distances for each
/// CPU worker comes last, so that a truncated file is noticed. `name` stands for the file in messages. The machine is
/// whole.
///
/// Errors: malformed (file, line, key, and what to write there), unsupported (the format of a later version).
base::Result<Machine> parse_machine(std::string_view text, std::string_view name);

/// Reads and parses a machine's file. Errors: as `parse_machine`, and io.
base::Result<Machine> read_machine(const std::filesystem::path& path);

/// Writes a machine's file as a whole, or leaves the old one. Errors: io.
base::Result<void> write_machine(const std::filesystem::path& path, const Machine& machine,
                                 std::string_view found_on = {});

}  // namespace tandem::runtime
