// tools/report/page.cpp: joins the parts of a report's page.
#include "tools/report/page.hpp"

#include <chrono>

#include "tandem/analysis/history/history.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tools/out_file.hpp"
#include "tools/report/run_tables.hpp"
#include "tools/trace/summary.hpp"

namespace tandem::tools {
namespace {

/// Escapes text for a script element, so that nothing in it can end the element.
std::string script_text(const Json& json) {
  std::string text;
  for (const char letter : json.dump()) {
    if (letter == '<') text += "\\u003c";
    else text += letter;
  }
  return text;
}

/// The data of one run in the page.
struct RunText {
  std::string summary, facts, columns;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The text of one run. Adds its numbers and times to `written`.
base::Result<RunText> text_of(const std::string& folder, WrittenReport& written) {
  const auto start = std::chrono::steady_clock::now();
  auto run = trace::TraceReader::open(folder);
  if (!run) return run.error();
  const auto read = analysis::History::read(*run.value());
  if (!read) return read.error();
  const analysis::History& history = *read.value();
  written.read_s += seconds_since(start);
  written.events += history.events;
  written.tasks += history.tasks.size();
  const auto analysed = std::chrono::steady_clock::now();
  const analysis::TaskGraph graph(history);
  const RunNumbers numbers(history, graph);
  const RunTables tables = tables_of(history, graph, numbers.summary, numbers.broadcasts);
  const Json summary = summary_json(folder, numbers);  // the columns have the realised path
  auto columns = tables.columns.text();
  if (!columns) return columns.error();
  written.analysis_s += seconds_since(analysed);
  return RunText{script_text(summary), script_text(tables.facts), std::move(columns).value()};
}

void add_script(OutFile& out, std::string_view type, std::string_view name, std::size_t number, std::string_view text) {
  out.print("<script type=\"application/{}\" id=\"{}-{}\">", type, name, number);
  out.write(text);
  out.write("</script>\n");
}

}  // namespace

base::Result<WrittenReport> write_report(const std::vector<std::string>& folders, const std::filesystem::path& file) {
  std::vector<RunText> runs;
  WrittenReport written;
  for (const std::string& folder : folders) {
    auto run = text_of(folder, written);
    if (!run) return run.error();
    runs.push_back(std::move(run).value());
  }
  auto created = OutFile::create(file);
  if (!created) return created.error();
  OutFile out = std::move(created).value();
  out.write("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Tandem report</title>\n"
            "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n");
  out.write(page_style);
  out.write("</style>\n</head>\n<body>\n<div id=\"report\">Reading the run ...</div>\n");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    add_script(out, "json", "summary", i, runs[i].summary);
    add_script(out, "json", "facts", i, runs[i].facts);
    add_script(out, "octet-stream", "columns", i, runs[i].columns);
  }
  out.write("<script>\n'use strict';\n");
  out.write(page_program);
  out.write("</script>\n</body>\n</html>\n");
  written.bytes = out.bytes();
  if (const auto closed = out.close(); !closed) return closed.error();
  return written;
}

}  // namespace tandem::tools
