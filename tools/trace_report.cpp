// tools/trace_report.cpp: `tandem trace report`: a run as a page for a browser.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tools/json_report.hpp"
#include "tools/report/page.hpp"
#include "tools/trace_command.hpp"

namespace tandem::tools {

void add_trace_report(Subcommand trace, ToolContext& context) {
  Subcommand command = trace.add_subcommand("report", "Write a page for a browser: what limits a run, and pictures of it");
  const auto folder = trace_folder(command);
  const auto out = std::make_shared<std::string>();
  const auto json = json_flag(command);
  const auto other = std::make_shared<std::string>();
  command.add_option("other", *other, "Folder of a second run: the page compares both, and shows where the seconds went");
  command.add_option("-o,--out", *out, "The file to write; FOLDER/report.html by default");
  command.callback([folder, other, out, json, &context] {
    const std::filesystem::path file = out->empty() ? std::filesystem::path(*folder) / "report.html" : std::filesystem::path(*out);
    std::vector<std::string> folders{*folder};
    if (!other->empty()) folders.push_back(*other);
    const auto written = write_report(folders, file);
    if (!written) return fail(context, written.error());
    const WrittenReport& report = written.value();
    if (*json)
      return print(Json{{"file", file.string()}, {"bytes", report.bytes}, {"events", report.events}, {"tasks", report.tasks},
                        {"read_s", report.read_s}, {"analysis_s", report.analysis_s}});
    fmt::print("report: {} ({:.1f} MB); open it in a browser\n", file.string(), static_cast<double>(report.bytes) / 1e6);
  });
}

}  // namespace tandem::tools
