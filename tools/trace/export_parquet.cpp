// tools/trace/export_parquet.cpp: tables as Parquet files, ours or StarVZ's: their columns go to plain files, which a
// Python with pyarrow packs.
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "tandem/analysis/tables.hpp"
#include "tools/json/json_report.hpp"
#include "tools/out_file.hpp"
#include "tools/python_script.hpp"
#include "tools/trace/export.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;

/// Little-endian, without a header; `python/tandem/_parquet.py` knows the kinds.
base::Result<void> write_column(const Table& table, const Column& column, const fs::path& folder) {
  auto opened = OutFile::create(folder / fmt::format("{}.{}", table.name, column.name));
  if (!opened) return opened.error();
  OutFile& file = opened.value();
  for (std::size_t row = 0; row < table.rows; ++row) {
    switch (column.kind) {
      case ColumnKind::time:
      case ColumnKind::id:
      case ColumnKind::u64:
      case ColumnKind::i64: file.put(column.integer(row)); break;
      case ColumnKind::number:
      case ColumnKind::text: file.put(static_cast<std::uint32_t>(column.integer(row))); break;
      case ColumnKind::i32: file.put(static_cast<std::int32_t>(column.integer(row))); break;
      case ColumnKind::worker: file.put(static_cast<std::uint16_t>(column.integer(row))); break;
      case ColumnKind::flag: file.put(static_cast<std::uint8_t>(column.integer(row))); break;
      case ColumnKind::real: file.put(column.real(row)); break;
    }
  }
  return file.close();
}

base::Result<void> write_json(const Json& json, const fs::path& path) {
  auto file = OutFile::create(path);
  if (!file) return file.error();
  file.value().write(json.dump());
  return file.value().close();
}

std::int64_t total_ns_of(const Table& table) {
  std::int64_t total_ns = 0;
  for (const Column& column : table.columns)
    if (column.name == "duration_ns")
      for (std::size_t row = 0; row < table.rows; ++row)
        if (const std::int64_t ns = column.integer(row); ns != no_time) total_ns += ns;
  return total_ns;
}

/// Writes a file for each column of each table, and schema.json.
base::Result<std::vector<ExportedTable>> write_columns(History& history, const fs::path& folder) {
  std::vector<ExportedTable> written;
  Json tables = Json::array();
  for (const Table& table : tables_of(history)) {
    Json columns = Json::array();
    for (const Column& column : table.columns) {
      if (auto done = write_column(table, column, folder); !done) return done.error();
      columns.push_back({{"name", column.name}, {"kind", name_of(column.kind)}});
    }
    tables.push_back({{"name", table.name}, {"rows", table.rows}, {"columns", columns}});
    written.push_back({.name = std::string(table.name),
                       .file = fmt::format("{}.parquet", table.name),
                       .rows = table.rows,
                       .total_ns = total_ns_of(table)});
  }
  Json texts = Json::array();
  for (Texts::Id id = 0; id < history.texts.size(); ++id) texts.push_back(history.texts[id]);
  const Json about{{"program", history.program}, {"job", history.job}, {"size", history.size}, {"events", history.events},
                   {"duration_ns", history.duration_ns}, {"date_ns", history.date_ns}};
  if (auto done = write_json({{"about", about}, {"tables", tables}, {"texts", texts}}, folder / "schema.json"); !done)
    return done.error();
  return written;
}

base::Result<void> add_file(Exported& exported, const fs::path& out, const std::string& file) {
  std::error_code error;
  exported.files.push_back({.file = file, .bytes = fs::file_size(out / file, error)});
  if (error) return base::Error{base::ErrorCode::io, (out / file).string() + ": was not written: " + error.message()};
  return {};
}

}  // namespace

base::Result<Exported> export_parquet(History& history, const fs::path& out, const std::string& python) {
  if (auto made = make_folder(out); !made) return made.error();
  const auto work = WorkFolder::create(out, ".columns-");
  if (!work) return work.error();
  auto tables = write_columns(history, work.value().path());
  if (!tables) return tables.error();
  if (const auto packed = run_python(python, "parquet", {work.value().path().string(), out.string()}); !packed)
    return packed.error();
  Exported exported{.tables = std::move(tables).value(), .files = {}, .notes = {}};
  for (const ExportedTable& table : exported.tables)
    if (auto added = add_file(exported, out, table.file); !added) return added.error();
  return exported;
}

base::Result<Exported> export_starvz(History& history, const fs::path& out, const std::string& python) {
  if (auto made = make_folder(out); !made) return made.error();
  const auto work = WorkFolder::create(out, ".columns-");
  if (!work) return work.error();
  if (auto tables = write_columns(history, work.value().path()); !tables) return tables.error();
  const auto packed = run_python(python, "starvz", {work.value().path().string(), out.string()});
  if (!packed) return packed.error();
  // A line for each table: its name and its rows.
  Exported exported;
  std::istringstream lines(packed.value());
  for (std::string name, rows; lines >> name >> rows;) {
    exported.tables.push_back(
        {.name = name, .file = name + ".parquet", .rows = std::strtoull(rows.c_str(), nullptr, 10), .total_ns = 0});
    if (auto added = add_file(exported, out, name + ".parquet"); !added) return added.error();
  }
  if (auto added = add_file(exported, out, "config.yaml"); !added) return added.error();
  return exported;
}

}  // namespace tandem::tools
