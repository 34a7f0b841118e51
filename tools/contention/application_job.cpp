// tools/contention/application_job.cpp: a runtime for each run, meetings of the ranks between them, and the trace of
// the run.
#include "tools/contention/application_job.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <span>

#include "tandem/analysis/verdict/sending.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tandem/base/hardware_counters.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/tandem.hpp"
#include "tandem/trace.hpp"
#include "tandem/trace/layout.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tools/linalg/job.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools::contention {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Rank;
using base::Result;

constexpr comm::Tag order_tag{1}, file_tag{2};
constexpr Rank measured{0}, other{1};

/// Rank 0's next request.
struct Order {
  bool is_gemm = false;
  unsigned workers = 0;  ///< 0: no further run
};

Result<void> done(const comm::Status& status) {
  if (status.ending == comm::Ending::done) return {};
  return Error{ErrorCode::io, "contention measure: the other rank is gone"};
}

/// An endpoint between two runs; both ranks open and close it at the same time.
class Meeting {
 public:
  static Result<Meeting> open(const ToolContext& context) {
    auto job = comm::join_job({.environment = base::process_environment(),
                               .log = context.log,
                               .timeout_ns = context.config.get_duration_ns("comm.start_timeout")});
    if (!job) return job.error();
    comm::EndpointOptions options = comm::comm_options(context.config);
    options.progress = "inline";
    auto endpoint = comm::Endpoint::open(std::move(job).value(), options, context.log);
    if (!endpoint) return endpoint.error();
    return Meeting(std::move(endpoint).value());
  }

  Result<void> send(const Order& order) {
    return done(endpoint_->wait(endpoint_->isend(other, order_tag, {&order, sizeof order})));
  }
  Result<Order> receive_order() {
    Order order;
    if (const auto good = done(endpoint_->wait(endpoint_->irecv(measured, order_tag, {&order, sizeof order}))); !good)
      return good.error();
    return order;
  }

  /// Sends the files below a folder, each with its name there as header; a message without a name ends them.
  Result<void> send_files(const fs::path& folder) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
      if (const auto good = send_file(entry.path().lexically_relative(folder).string(), bytes); !good) return good;
    }
    return send_file("", {});
  }
  Result<void> receive_files(const fs::path& folder) {
    for (;;) {
      const comm::Request request = endpoint_->irecv_owned(other, file_tag);
      const comm::Status status = endpoint_->wait(request);
      if (const auto good = done(status); !good) return good;
      const std::string name(reinterpret_cast<const char*>(status.header.data()), status.header.size());
      if (name.empty()) return {};
      const std::string_view bytes(reinterpret_cast<const char*>(status.owned.data()), status.owned.size());
      fs::create_directories((folder / name).parent_path());
      if (const auto written = base::replace_file(folder / name, std::string(bytes)); !written) return written;
    }
  }

 private:
  explicit Meeting(std::unique_ptr<comm::Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}
  Result<void> send_file(const std::string& name, const std::vector<char>& bytes) {
    return done(endpoint_->wait(endpoint_->isend(other_than_this(), file_tag, comm::SendBuffer(bytes),
                                                 {.header = std::as_bytes(std::span(name))})));
  }
  Rank other_than_this() const { return endpoint_->rank() == measured ? other : measured; }

  std::unique_ptr<comm::Endpoint> endpoint_;
};

/// Runs the application on this rank, with a trace of the repetition that is measured; generating the matrices and a
/// first repetition are not.
Result<LinalgOutcome> run_here(const ToolContext& context, const ApplicationOptions& options, const ApplicationRun& run,
                               const fs::path& traced) {
  const bool counts = why_no_counters().empty();
  Options chosen{.workers = run.workers,
                 .more = {{"trace", ""}, {"report", ""}, {"trace.when_full", "wait"}, {"trace.counters", counts ? "true" : "false"}, {"watchdog_throws", "true"}}};
  std::vector<std::string> words = context.arguments;  // the runtime reads the --tandem.* among them
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  try {
    base::restrict_blas_threads();
    Runtime rt(argc, argv.data(), chosen);
    LinalgJob job;
    job.op = run.application == "gemm" ? LinalgOp::gemm : LinalgOp::cg;
    job.n = options.order(run.application);
    job.tile = options.tile;
    job.distribution = linalg::Distribution::block_cyclic(linalg::Distribution::squarest(rt.size()));
    job.iterations = options.cg_iterations;
    job.tolerance = 0;
    job.repetitions = 1;
    job.before_measured = [&] {
      rt.trace().start(counts ? "comm,dist,broadcast,task" : "comm,dist,broadcast", traced);
      rt.wait();  // now both ranks record
    };
    job.after_measured = [&] { rt.trace().stop(); };
    auto outcome = run_linalg<double>(rt, job);
    if (outcome && outcome.value().info != 0)
      return Error{ErrorCode::invalid_argument, fmt::format("contention measure: cg broke down in iteration {}: take fewer iterations (--cg-iterations)", outcome.value().info)};
    return outcome;
  } catch (const StartError& error) {
    return Error{ErrorCode::invalid_argument, error.what()};
  } catch (const std::exception& error) {
    return Error{ErrorCode::io, fmt::format("contention measure: {} with {} workers failed: {}", run.application,
                                            run.workers, error.what())};
  }
}

/// One run of rank 0 with the other rank.
Result<void> run_with_other(const ToolContext& context, const ApplicationOptions& options, ApplicationRun& run) {
  const auto work = WorkFolder::create(fs::temp_directory_path(), "tandem-contention-");
  if (!work) return work.error();
  {
    auto meeting = Meeting::open(context);
    if (!meeting) return meeting.error();
    if (const auto good = meeting.value().send({.is_gemm = run.application == "gemm", .workers = run.workers}); !good)
      return good;
  }
  const fs::path traced = work.value().path() / "trace";
  const auto outcome = run_here(context, options, run, traced);
  if (!outcome) return outcome.error();
  {
    auto meeting = Meeting::open(context);
    if (!meeting) return meeting.error();
    if (const auto good = meeting.value().receive_files(traced / trace::rank_folder_name(other.value())); !good)
      return good;
  }
  run.seconds = outcome.value().seconds.front();
  run.gflop_s = outcome.value().work / run.seconds / 1e9;
  if (outcome.value().iterations) run.iterations_per_s = static_cast<double>(*outcome.value().iterations) / run.seconds;
  return read_messages(traced, run);
}

}  // namespace

std::string why_no_counters() {
  const auto counters = base::open_hardware_counters();
  if (!counters) return counters.error().message;
  if (counters.value()->read().stalled == base::HardwareCounts::kNotCounted)
    return "this processor does not count stalled cycles";
  return "";
}

Result<void> run_applications(const ToolContext& context, const ApplicationOptions& options,
                              const std::vector<ApplicationRun>& plan, RowFile<ApplicationRun>& results,
                              const std::function<Result<void>(const ApplicationRun&, std::size_t left)>& made) {
  auto left = static_cast<std::size_t>(
      std::ranges::count_if(plan, [&](const ApplicationRun& run) { return !results.has(run); }));
  for (ApplicationRun run : plan) {
    if (results.has(run)) continue;
    if (const auto good = run_with_other(context, options, run); !good) return good;
    if (const auto good = results.add(run); !good) return good;
    if (const auto good = made(run, --left); !good) return good;
  }
  auto meeting = Meeting::open(context);
  if (!meeting) return meeting.error();
  return meeting.value().send(Order{});
}

Result<void> serve_applications(const ToolContext& context, const ApplicationOptions& options) {
  for (;;) {
    Order order;
    {
      auto meeting = Meeting::open(context);
      if (!meeting) return meeting.error();
      const auto received = meeting.value().receive_order();
      if (!received) return received.error();
      order = received.value();
    }
    if (order.workers == 0) return {};
    const auto work = WorkFolder::create(fs::temp_directory_path(), "tandem-contention-");
    if (!work) return work.error();
    const fs::path traced = work.value().path() / "trace";
    const auto outcome =
        run_here(context, options, {.application = order.is_gemm ? "gemm" : "cg", .workers = order.workers}, traced);
    if (!outcome) return outcome.error();
    auto meeting = Meeting::open(context);
    if (!meeting) return meeting.error();
    if (const auto good = meeting.value().send_files(traced / trace::rank_folder_name(other.value())); !good)
      return good;
  }
}

Result<void> read_messages(const fs::path& folder, ApplicationRun& run) {
  const auto reader = trace::TraceReader::open(folder);
  if (!reader) return reader.error();
  const auto history = analysis::History::read(*reader.value(), {.content = analysis::HistoryContent::summary});
  if (!history) return history.error();
  run.messages = run.message_bytes = 0;
  for (const analysis::CommunicationRow& row : history.value()->communications) {
    if (!analysis::counts(row, analysis::Sent::flow_data)) continue;
    ++run.messages;
    run.message_bytes += row.bytes;
  }
  std::vector<double> sent, delivered;
  for (const analysis::RankSending& rank : analysis::sending(*history.value(), analysis::Sent::flow_data)) {
    if (rank.sent.busy_ns > 0) sent.push_back(rank.sent.bytes_per_s() / 1e6);
    if (rank.delivered.busy_ns > 0) delivered.push_back(rank.delivered.bytes_per_s() / 1e6);
  }
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? std::nullopt : std::optional(sum / static_cast<double>(values.size()));
  };
  run.send_mb_s = mean(sent);
  run.delivered_mb_s = mean(delivered);
  double cycles = 0, stalled = 0;
  for (const analysis::CountsRow& row : history.value()->counts) {
    if (row.cycles == analysis::CountsRow::not_counted || row.stalled == analysis::CountsRow::not_counted) continue;
    cycles += static_cast<double>(row.cycles);
    stalled += static_cast<double>(row.stalled);
  }
  run.stalled = cycles > 0 ? std::optional(stalled / cycles) : std::nullopt;
  return {};
}

}  // namespace tandem::tools::contention
