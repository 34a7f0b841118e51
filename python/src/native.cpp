// python/src/native.cpp: the module tandem._native: a run's history, its tables column by column, and the analysis of
// tandem/analysis.
//
// Times are in nanoseconds. Values that are not known are still the numbers that stand for them;
// python/tandem/_columns.py makes nulls of them. python/tandem/_native.pyi declares all this for type checkers.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "arrays.hpp"
#include "contention.hpp"
#include "tandem/analysis/verdict/quality.hpp"
#include "tandem/analysis/verdict/verdict.hpp"

namespace tandem::python {
namespace {

using namespace analysis;

/// What the reader reports; TraceError in Python.
struct TraceFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::optional<clock::CorrectionMethod> method_of(const std::string& name) {
  if (name == "auto") return std::nullopt;
  if (name == "none") return clock::CorrectionMethod::none;
  if (name == "linear") return clock::CorrectionMethod::linear;
  if (name == "piecewise") return clock::CorrectionMethod::piecewise;
  throw nb::value_error("clock is auto, none, linear or piecewise");
}

/// A history with what is computed from it on demand. Python's global lock protects it.
class NativeRun {
 public:
  NativeRun(const std::string& folder, const std::string& clock) {
    const HistoryOptions options{.method = method_of(clock)};
    const nb::gil_scoped_release others_run;
    const auto run = trace::TraceReader::open(folder);
    if (!run) throw TraceFailure(run.error().message);
    auto history = History::read(*run.value(), options);
    if (!history) throw TraceFailure(history.error().message);
    history_ = std::move(history).value();
    tables_ = tables_of(*history_);
  }

  const History& history() const { return *history_; }

  /// [(name, rows, [(column, kind)])]
  nb::list tables() const {
    nb::list tables;
    for (const Table& table : tables_) {
      nb::list columns;
      for (const Column& column : table.columns) columns.append(nb::make_tuple(column.name, name_of(column.kind)));
      tables.append(nb::make_tuple(table.name, table.rows, columns));
    }
    return tables;
  }
  nb::object column(std::size_t table, std::size_t column) const {
    return column_values(history_->texts, tables_.at(table), tables_.at(table).columns.at(column));
  }

  nb::dict summary() {
    const Summary& summary = summarised();
    nb::dict dict;
    dict["lost_events"] = quality(history()).lost_events;
    dict["makespan_ns"] = summary.split.makespan_ns;
    dict["begin_ns"] = summary.split.begin_ns;
    dict["workers"] = summary.split.workers.size();
    dict["area_ns"] = summary.area.ns;
    dict["area_exact"] = summary.area.is_exact;
    nb::dict worker_kinds;
    for (const AreaBound::Kind& kind : summary.area.kinds) worker_kinds[nb::cast(kind.name)] = kind.workers;
    dict["worker_kinds"] = worker_kinds;
    nb::list area_kernels;
    for (const KernelPlace& place : summary.area.kernels)
      area_kernels.append(nb::make_tuple(history_->texts[place.codelet], summary.area.kinds[place.kind].name,
                                         place.tasks, place.ns,
                                         summary.area.is_exact ? nb::cast(place.placed) : nb::none()));
    dict["area_kernels"] = area_kernels;
    dict["critical_path_ns"] = summary.path.length_ns;
    dict["critical_path_tasks"] = summary.path.tasks.size();
    dict["critical_path_with_messages_ns"] = summary.path_with_messages.length_ns;
    nb::dict split, realised;
    const SpentTimes total = summary.split.total();
    for (std::size_t i = 0; i < spent_kinds; ++i) split[nb::cast(name_of(static_cast<Spent>(i)))] = total[i];
    for (std::size_t i = 0; i < step_kinds; ++i) {
      const auto kind = static_cast<StepKind>(i);
      realised[nb::cast(name_of(kind))] = summary.realised.total_ns(kind);
    }
    dict["split_ns"] = split;
    dict["realised_ns"] = realised;
    nb::list findings;
    for (const Finding& finding : verdict(*history_, summary))
      findings.append(nb::make_tuple(finding.key, finding.lost_ns, finding.what, finding.remedy));
    dict["findings"] = findings;
    return dict;
  }

  /// Of each worker: rank, worker, and its times by reason.
  nb::dict split() {
    const auto& workers = summarised().split.workers;
    nb::dict dict;
    dict["rank"] = array_of(collect<std::uint32_t>(workers.size(), [&](std::size_t i) { return workers[i].rank; }));
    dict["worker"] = array_of(collect<std::uint16_t>(workers.size(), [&](std::size_t i) { return workers[i].worker; }));
    for (std::size_t kind = 0; kind < spent_kinds; ++kind)
      dict[nb::cast(name_of(static_cast<Spent>(kind)))] =
          array_of(collect<std::int64_t>(workers.size(), [&](std::size_t i) { return workers[i].ns[kind]; }));
    return dict;
  }

  nb::dict kernels() {
    const auto& kernels = summarised().kernels;
    nb::dict dict;
    const auto codelets = collect<std::uint32_t>(kernels.size(), [&](std::size_t i) { return kernels[i].codelet; });
    dict["codelet"] = dictionary_of(history_->texts, codelets);
    const auto add = [&](const char* name, auto member) {
      dict[name] = array_of(collect<std::int64_t>(kernels.size(), [&](std::size_t i) { return kernels[i].*member; }));
    };
    add("tasks", &KernelProfile::tasks);
    add("total_ns", &KernelProfile::total_ns);
    add("min_ns", &KernelProfile::min_ns);
    add("first_quartile_ns", &KernelProfile::first_quartile_ns);
    add("median_ns", &KernelProfile::median_ns);
    add("third_quartile_ns", &KernelProfile::third_quartile_ns);
    add("max_ns", &KernelProfile::max_ns);
    add("outliers", &KernelProfile::outliers);
    add("outlier_excess_ns", &KernelProfile::outlier_excess_ns);
    return dict;
  }

  /// Tasks that took longer than `Durations::limit_ns(factor)`: the row of each, the median and the limit.
  nb::dict outliers(double factor) {
    const UsualDurations usual(*history_, summarised().kernels);
    std::vector<std::uint32_t> found;
    for (const std::uint32_t row : history_->tasks.rows())
      if (history_->tasks.has_run(row) && usual.is_outlier(row, factor)) found.push_back(row);
    nb::dict dict;
    dict["median_ns"] = array_of(
        collect<std::int64_t>(found.size(), [&](std::size_t i) { return usual.of(found[i]).median_ns; }));
    dict["limit_ns"] = array_of(
        collect<double>(found.size(), [&](std::size_t i) { return usual.of(found[i]).limit_ns(factor); }));
    dict["task"] = array_of(std::move(found));
    return dict;
  }

  /// Rows of tasks.
  nb::object critical_path(bool messages) {
    const Summary& summary = summarised();
    return array_of(std::vector<std::uint32_t>(messages ? summary.path_with_messages.tasks : summary.path.tasks));
  }

  nb::dict realised_path() {
    const auto& steps = summarised().realised.steps;
    nb::dict dict;
    std::vector<std::uint32_t> kinds(steps.size());
    Texts names;
    for (std::size_t i = 0; i < steps.size(); ++i) kinds[i] = names.add(name_of(steps[i].kind));
    dict["kind"] = dictionary_of(names, kinds);
    dict["task"] = array_of(collect<std::uint32_t>(steps.size(), [&](std::size_t i) { return steps[i].task; }));
    dict["from"] = array_of(collect<std::uint32_t>(steps.size(), [&](std::size_t i) { return steps[i].from; }));
    dict["start_ns"] = array_of(collect<std::int64_t>(steps.size(), [&](std::size_t i) { return steps[i].start_ns; }));
    dict["end_ns"] = array_of(collect<std::int64_t>(steps.size(), [&](std::size_t i) { return steps[i].end_ns; }));
    return dict;
  }

  /// Edges of the measured graph: rows of tasks, and of the message that an edge is.
  nb::dict graph() const {
    const TaskGraph graph(*history_);
    std::vector<std::uint32_t> to, from, message;
    for (std::uint32_t task = 0; task < history_->tasks.size(); ++task) {
      for (const TaskGraph::Edge& edge : graph.into(task)) {
        to.push_back(task);
        from.push_back(edge.from);
        message.push_back(edge.message);
      }
    }
    nb::dict dict;
    dict["to"] = array_of(std::move(to));
    dict["from"] = array_of(std::move(from));
    dict["message"] = array_of(std::move(message));
    return dict;
  }

 private:
  const Summary& summarised() {
    if (!summary_) summary_.emplace(*history_);
    return *summary_;
  }

  std::unique_ptr<History> history_;
  std::vector<Table> tables_;
  std::optional<Summary> summary_;
};

}  // namespace
}  // namespace tandem::python

NB_MODULE(_native, m) {
  using namespace tandem::python;
  nb::exception<TraceFailure> error(m, "TraceError");
  error.attr("__module__") = "tandem";
  error.attr("__doc__") =
      "The folder is no trace, or its files are damaged: the message says which, where, and what to do.";
  const auto fact = [](auto member) { return [member](const NativeRun& run) { return run.history().*member; }; };
  nb::class_<NativeRun>(m, "Run")
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("folder"), nb::arg("clock"))
      .def_prop_ro("program", fact(&History::program))
      .def_prop_ro("job", fact(&History::job))
      .def_prop_ro("size", fact(&History::size))
      .def_prop_ro("events", fact(&History::events))
      .def_prop_ro("duration_ns", fact(&History::duration_ns))
      .def_prop_ro("date_ns", fact(&History::date_ns))
      .def("tables", &NativeRun::tables)
      .def("column", &NativeRun::column, nb::arg("table"), nb::arg("column"))
      .def("summary", &NativeRun::summary)
      .def("split", &NativeRun::split)
      .def("kernels", &NativeRun::kernels)
      .def("outliers", &NativeRun::outliers, nb::arg("factor"))
      .def("critical_path", &NativeRun::critical_path, nb::arg("messages"))
      .def("realised_path", &NativeRun::realised_path)
      .def("graph", &NativeRun::graph);
  add_contention(m);
}
