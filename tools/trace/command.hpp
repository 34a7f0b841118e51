// tools/trace/command.hpp: the subcommands below `tandem trace`, and functions that they share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tandem/base/result.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {

// To add one, write trace_NAME.cpp with add_trace_NAME, declare it here, and call it in trace_command.cpp.
void add_trace_archive(Subcommand trace, ToolContext& context);
void add_trace_check(Subcommand trace, ToolContext& context);
void add_trace_dump(Subcommand trace, ToolContext& context);
void add_trace_export(Subcommand trace, ToolContext& context);
void add_trace_info(Subcommand trace, ToolContext& context);
void add_trace_overhead(Subcommand trace, ToolContext& context);
void add_trace_recover(Subcommand trace, ToolContext& context);
void add_trace_report(Subcommand trace, ToolContext& context);
void add_trace_stats(Subcommand trace, ToolContext& context);
void add_trace_summary(Subcommand trace, ToolContext& context);

/// Adds the argument FOLDER to a subcommand.
std::shared_ptr<std::string> trace_folder(Subcommand command);
/// Adds the flag --json to a subcommand that prints one object.
std::shared_ptr<bool> json_flag(Subcommand command);

/// Logs the error and sets the exit status: 2 when the folder is no trace, or none that can be read yet; 1 for damage
/// and errors of the system.
void fail(ToolContext& context, const base::Error& error);

/// Opens a trace. Null after an error, which was logged.
std::unique_ptr<trace::TraceReader> open_trace(const std::string& folder, ToolContext& context);

/// Puts the events of a run on the clock of rank 0, by the line between the first and the last comparison of each rank;
/// before and after them the offset is constant. A rank that was never compared has rank 0's clock if it ran on that
/// host (the TSC's origin is the machine's), else the date of its system.
class RunTimes {
 public:
  explicit RunTimes(const trace::TraceReader& run);

  std::int64_t of(const trace::Event& event) const { return of(event.rank, event.local_ns); }
  std::int64_t of(std::uint32_t rank, std::int64_t local_ns) const;
  /// The date of such a time, in nanoseconds since 1970.
  std::int64_t date_ns(std::int64_t time_ns) const noexcept { return time_ns + date_offset_ns_; }
  /// The possible error of the correction between the points; none: the clock was never compared.
  std::optional<std::int64_t> error_ns(std::uint32_t rank) const;

 private:
  std::map<std::uint32_t, trace::ReferenceLine> lines_;
  std::map<std::uint32_t, std::int64_t> errors_;
  std::int64_t date_offset_ns_ = 0;
};

/// Nanoseconds as exact seconds: "12.000000345".
std::string seconds(std::int64_t ns);

}  // namespace tandem::tools
