// tools/trace/report.cpp: `tandem trace report`: shows a run as a page for a browser, or as still pictures.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/report/page.hpp"
#include "tools/report/stills.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools {
namespace {

void add_still_options(Subcommand command, StillOptions& stills) {
  command.add_option("--pdf", stills.pdf,
                     "Draw the panels into this PDF file instead of the page, below each other, for print");
  command.add_option("--svg", stills.svg, "Draw the panels into this SVG file");
  command.add_option("--png", stills.png, "Draw the panels into this PNG file, 300 dots per inch");
  command.add_option("--panel", stills.panels,
                     "Panels to draw, separated by commas, or `list`, which prints their names (default: all)");
  command.add_option(
      "--show", stills.show,
      "What to draw over the workers, separated by commas: outliers (alone), messages, path (the realised one)");
  command.add_option("--from", stills.from,
                     "Begin of the time to draw, in seconds (default: 0, the start of the first task)");
  command.add_option("--to", stills.to, "End of the time to draw, in seconds (default: the end of the run)");
  command.add_option("--width", stills.width, "Width of the picture: 180mm, 18cm or 7in (default: 7in)");
  command.add_option("--height", stills.height, "Height of the picture (default: what its panels need)");
}

void draw(const std::vector<std::string>& folders, StillOptions stills, bool json, ToolContext& context) {
  stills.list = stills.panels == "list";
  if (stills.list) stills.panels.clear();
  if (!stills.wanted()) {
    context.log.error(
        "trace report: --panel, --show, --from, --to, --width and --height are for pictures: add --pdf, --svg or --png "
        "FILE");
    context.exit_status = 2;
    return;
  }
  const auto drawn = draw_stills(folders, stills, context.config.get_string("python"));
  if (!drawn) return fail(context, drawn.error());
  if (stills.list) return fmt::print("{}", drawn.value());
  Json files = Json::array();
  for (const std::string& file : {stills.pdf, stills.svg, stills.png}) {
    if (file.empty()) continue;
    files.push_back(file);
    if (!json) fmt::print("picture: {} ({})\n", file, short_bytes(std::filesystem::file_size(file)));
  }
  if (json) print(Json{{"files", files}, {"panels", drawn.value().substr(0, drawn.value().find('\n'))}});
}

}  // namespace

void add_trace_report(Subcommand trace, ToolContext& context) {
  Subcommand command =
      trace.add_subcommand("report", "Write a page for a browser: what limits a run, and pictures of it");
  const auto folder = trace_folder(command);
  const auto out = std::make_shared<std::string>();
  const auto json = json_flag(command);
  const auto other = std::make_shared<std::string>();
  const auto stills = std::make_shared<StillOptions>();
  command.add_option("other", *other,
                     "Folder of a second run: the page compares both, and shows where the seconds went");
  command.add_option("-o,--out", *out, "The page to write; FOLDER/report.html by default, none beside pictures");
  add_still_options(command, *stills);
  command.callback([folder, other, out, stills, json, &context] {
    std::vector<std::string> folders{*folder};
    if (!other->empty()) folders.push_back(*other);
    const std::string of_stills = stills->pdf + stills->svg + stills->png + stills->panels + stills->show +
                                  stills->from + stills->to + stills->width + stills->height;
    if (!of_stills.empty()) {
      stills->page = *out;
      return draw(folders, *stills, *json, context);
    }
    const std::filesystem::path file =
        out->empty() ? std::filesystem::path(*folder) / "report.html" : std::filesystem::path(*out);
    const auto written = write_report(folders, file);
    if (!written) return fail(context, written.error());
    const WrittenReport& report = written.value();
    if (*json)
      return print(Json{{"file", file.string()}, {"bytes", report.bytes}, {"events", report.events}, {"tasks", report.tasks},
                        {"read_s", report.read_s}, {"analysis_s", report.analysis_s}});
    fmt::print("report: {} ({}); open it in a browser\n", file.string(), short_bytes(report.bytes));
  });
}

}  // namespace tandem::tools
