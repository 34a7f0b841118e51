// tools/report/page.cpp: the parts of a report's page, one after the other.
#include "tools/report/page.hpp"

#include "tandem/analysis/history.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tools/out_file.hpp"
#include "tools/report/run_tables.hpp"
#include "tools/trace_summary.hpp"

namespace tandem::tools {
namespace {

/// As text of a script element: nothing in it can end the element.
std::string script_text(const Json& json) {
  std::string text;
  for (const char letter : json.dump()) {
    if (letter == '<') text += "\\u003c";
    else text += letter;
  }
  return text;
}

}  // namespace

base::Result<WrittenReport> write_report(const std::string& folder, const std::filesystem::path& file) {
  auto run = trace::TraceReader::open(folder);
  if (!run) return run.error();
  const auto read = analysis::History::read(*run.value());
  if (!read) return read.error();
  const analysis::History& history = *read.value();
  const analysis::TaskGraph graph(history);
  const RunNumbers numbers(history, graph);
  const RunTables tables = tables_of(history, graph, numbers.summary);
  Json facts_of_summary = summary_json(folder, numbers);
  facts_of_summary["realised_path"] = Json();  // the columns have it
  auto columns = tables.columns.text();
  if (!columns) return columns.error();
  auto created = OutFile::create(file);
  if (!created) return created.error();
  OutFile out = std::move(created).value();
  out.write("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Tandem report</title>\n"
            "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n");
  out.write(page_style);
  out.write("</style>\n</head>\n<body>\n<div id=\"report\">Reading the run ...</div>\n<script type=\"application/json\" id=\"summary\">");
  out.write(script_text(facts_of_summary));
  out.write("</script>\n<script type=\"application/json\" id=\"facts\">");
  out.write(script_text(tables.facts));
  out.write("</script>\n<script type=\"application/octet-stream\" id=\"columns\">");
  out.write(columns.value());
  out.write("</script>\n<script>\n'use strict';\n");
  out.write(page_program);
  out.write("</script>\n</body>\n</html>\n");
  const std::uint64_t bytes = out.bytes();
  if (const auto closed = out.close(); !closed) return closed.error();
  return WrittenReport{bytes, history.tasks.size()};
}

}  // namespace tandem::tools
