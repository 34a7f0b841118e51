// tools/report/stills.cpp: writes the page of a report to a file, and has Python draw its panels.
#include "tools/report/stills.hpp"

#include <filesystem>
#include <string_view>
#include <utility>

#include "tools/python_script.hpp"
#include "tools/report/page.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools {
namespace {

std::vector<std::string> words_of(const StillOptions& options) {
  std::vector<std::string> words;
  if (options.list) words.push_back("--list");
  const std::pair<const char*, const std::string&> named[] = {
      {"pdf", options.pdf},      {"svg", options.svg},     {"png", options.png},
      {"panel", options.panels}, {"show", options.show},   {"from", options.from},
      {"to", options.to},        {"width", options.width}, {"height", options.height}};
  for (const auto& [name, value] : named)
    if (!value.empty()) words.push_back(std::string("--") + name + "=" + value);
  return words;
}

/// Turns Python's message about wrong arguments into one of the command.
base::Error without_prefix(const base::Error& error) {
  constexpr std::string_view prefix = "error: ";
  const std::size_t at = error.message.find(prefix);
  if (at == std::string::npos) return error;
  return {base::ErrorCode::invalid_argument, "trace report: " + error.message.substr(at + prefix.size())};
}

}  // namespace

base::Result<std::string> draw_stills(const std::vector<std::string>& folders, const StillOptions& options,
                                      const std::string& python) {
  std::vector<std::string> words = words_of(options);
  auto checked = run_python(python, "report", words);
  if (!checked) return without_prefix(checked.error());
  if (options.list) return checked;
  const auto folder = WorkFolder::create(std::filesystem::temp_directory_path(), "tandem-report-");
  if (!folder) return folder.error();
  const std::filesystem::path page =
      options.page.empty() ? folder.value().path() / "report.html" : std::filesystem::path(options.page);
  if (const auto written = write_report(folders, page); !written) return written.error();
  words.push_back(page.string());
  return run_python(python, "report", words);
}

}  // namespace tandem::tools
