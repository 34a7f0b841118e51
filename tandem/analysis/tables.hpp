// tandem/analysis/tables.hpp: the tables of a history with named columns, for uniform exports and Python.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// The content of a column. `time`: nanoseconds, or `no_time`; `id`: a task's, or `no_time`; `number`: unsigned, or
/// `no_number` (`worker`: `no_worker`); the latter mean "no value". `text`: a number of `History::texts`.
enum class ColumnKind : std::uint8_t { time, id, number, worker, u64, i64, i32, flag, real, text };
std::string_view name_of(ColumnKind kind) noexcept;

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::number;
  std::function<std::int64_t(std::size_t row)> integer;  ///< u64 as the int64 of the same bits
  std::function<double(std::size_t row)> real;
};

struct Table {
  std::string name;
  std::size_t rows = 0;
  std::vector<Column> columns;
};

/// tasks, states, accesses, dependencies, communications, broadcasts, bags, bag_recipients, forwards, data, transfers,
/// memory, stagings, colours, counters, marks, spans, waits, tracer, actors, clocks. They read the history, which
/// outlives them. Names of states and similar values are added to its texts.
std::vector<Table> tables_of(History& history);

}  // namespace tandem::analysis
