// tandem/runtime/machine/machine_file.hpp: a machine as a TOML file that people read and edit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/runtime/machine/machine.hpp"

namespace tandem::runtime {

/// @name Words of the file
/// Kinds of devices of the program beyond the first are "user 1", "user 2" and so on.
/// @{
std::string_view word_of(NodeKind kind);
std::string_view word_of(LinkSource source);
std::string word_of(DeviceKind kind);
/// @}

/// The file of a machine. `parse_machine` reads the same machine again, with rates to six digits; bytes of names that are no UTF-8 become U+FFFD.
/// `found_on` is for people: which machine that is.
std::string to_text(const Machine& machine, std::string_view found_on = {});

/// Reads the whole of such a file: each memory, link, network and worker in a table of its own, and a row of distances for each CPU worker, which come last, so
/// that a file that was cut off is noticed. `name` stands for the file in messages. The machine is whole.
///
/// Errors: malformed (file, line, key, and what to write there), unsupported (the format of a later version).
base::Result<Machine> parse_machine(std::string_view text, std::string_view name);

/// The same from a file. Errors: io, too.
base::Result<Machine> read_machine(const std::filesystem::path& path);

/// The file is there with all its content, or is as before. Errors: io.
base::Result<void> write_machine(const std::filesystem::path& path, const Machine& machine, std::string_view found_on = {});

}  // namespace tandem::runtime
