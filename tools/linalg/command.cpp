// tools/linalg/command.cpp: `tandem linalg OP`: runs one operation of linear algebra and prints time, rate and
// residual.
#include <algorithm>
#include <climits>
#include <complex>
#include <map>
#include <memory>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/number_of.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tandem/linalg/blas_library.hpp"
#include "tandem/linalg/blas_threads.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernel_operations.hpp"
#include "tandem/runtime/virtual_place.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/linalg/job.hpp"
#include "tools/number_list.hpp"
#include "tools/out_file.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {
namespace {

/// The owners of tiles, as the command line states them.
struct Places {
  std::uint32_t p = 0, q = 0;  ///< 0: not given
  std::string file = {};
  std::vector<std::string> speeds = {};  ///< of ranks: numbers, or COUNTxNUMBER

  bool given() const noexcept { return p > 0 || q > 0 || !file.empty() || !speeds.empty(); }
};

/// The arguments as given.
struct LinalgArguments {
  LinalgJob job;  ///< without its sizes
  std::vector<std::string> sizes, tiles{"256"};  ///< numbers, or ranges FIRST:LAST:STEP
  std::string csv;  ///< file; empty: none
  std::string op;
  std::vector<std::string> precisions{"d"};
  std::string uplo = "lower";
  std::string pivoting = "tournament";
  std::size_t nrhs = 0;      ///< 0: not given
  std::size_t rows = 0;      ///< 0: not given
  unsigned repetitions = 0;  ///< 0: not given
  unsigned workers = 0;      ///< 0: as configured
  Places places;
  Places to;  ///< copy: owners of the matrix that is written
  double emulated_rate = 0;  ///< GFlop/s of emulated kernels; 0: kernels run
  bool json = false;
};

const std::map<std::string, LinalgOp> ops{
    {"potrf", LinalgOp::potrf}, {"potrs", LinalgOp::potrs}, {"posv", LinalgOp::posv},      {"gemm", LinalgOp::gemm},
    {"trsm", LinalgOp::trsm},   {"syrk", LinalgOp::syrk},   {"herk", LinalgOp::herk},      {"lacpy", LinalgOp::lacpy},
    {"getrf", LinalgOp::getrf}, {"gesv", LinalgOp::gesv},   {"geqrf", LinalgOp::geqrf},    {"gels", LinalgOp::gels},
    {"cg", LinalgOp::cg},       {"copy", LinalgOp::copy},   {"stencil", LinalgOp::stencil}};

base::Result<LinalgOutcome> run_in_precision(Runtime& rt, const LinalgJob& job, char precision) {
  switch (precision) {
    case 's': return run_linalg<float>(rt, job);
    case 'c': return run_linalg<std::complex<float>>(rt, job);
    case 'z': return run_linalg<std::complex<double>>(rt, job);
    default: return run_linalg<double>(rt, job);
  }
}

bool is_lu(LinalgOp op) { return op == LinalgOp::getrf || op == LinalgOp::gesv; }
bool is_iterative(LinalgOp op) { return op == LinalgOp::cg || op == LinalgOp::stencil; }
bool is_copy(LinalgOp op) { return op == LinalgOp::lacpy || op == LinalgOp::copy; }
bool is_rectangular(LinalgOp op) {
  return op == LinalgOp::geqrf || op == LinalgOp::gels || op == LinalgOp::stencil || op == LinalgOp::copy;
}

std::string complaint_of_size(const std::string& word) {
  if (positive_numbers(word, INT_MAX)) return "";
  return fmt::format("'{}' is not a whole number from 1 to {}, nor a range FIRST:LAST:STEP of them", word, INT_MAX);
}

/// A job of each size and tile that the command line names; one without a size, where a file has it.
std::vector<LinalgJob> jobs_of(const LinalgArguments& arguments) {
  const auto numbers_of = [](const std::vector<std::string>& words) {
    std::vector<std::size_t> all;
    for (const std::string& word : words)
      for (const std::int64_t number : positive_numbers(word, INT_MAX).value_or(std::vector<std::int64_t>()))
        all.push_back(static_cast<std::size_t>(number));
    return all;
  };
  std::vector<std::size_t> sizes = numbers_of(arguments.sizes);
  if (sizes.empty()) sizes.push_back(0);
  std::vector<LinalgJob> jobs;
  for (const std::size_t n : sizes)
    for (const std::size_t tile : numbers_of(arguments.tiles)) {
      jobs.push_back(arguments.job);
      jobs.back().n = n;
      jobs.back().tile = tile;
    }
  return jobs;
}

/// Describes contradictory arguments; empty: there are none.
std::string contradiction(const LinalgArguments& arguments, const LinalgJob& job) {
  const LinalgOp op = job.op;
  const bool solves = op == LinalgOp::potrs || op == LinalgOp::posv || op == LinalgOp::gesv;
  const bool takes_rhs = solves || op == LinalgOp::cg;
  const bool takes_matrix = takes_rhs || op == LinalgOp::potrf || op == LinalgOp::getrf;
  if (!job.matrix_file.empty() && !takes_matrix) return "--matrix is for potrf, potrs, posv, getrf, gesv and cg";
  if (!job.rhs_file.empty() && !takes_rhs) return "--rhs is for potrs, posv, gesv and cg";
  if (!job.out_file.empty() && !takes_rhs && op != LinalgOp::potrf)
    return "--out is for potrf, potrs, posv, gesv and cg";
  if (arguments.nrhs > 0 && !solves && op != LinalgOp::trsm && op != LinalgOp::gels)
    return "--nrhs is for potrs, posv, gesv, trsm and gels";
  if (job.pivoting != Pivoting::tournament && !is_lu(op)) return "--pivoting is for getrf and gesv";
  if (arguments.rows > 0 && !is_rectangular(op)) return "-m is for geqrf, gels, stencil and copy";
  if ((job.iterations || job.tolerance) && !is_iterative(op))
    return "--iterations and --tolerance are for cg and stencil";
  if (job.tolerance && !(*job.tolerance >= 0)) return "--tolerance has to be a number that is not negative";
  if (arguments.to.given() && op != LinalgOp::copy) return "--to-p, --to-q and --to-distribution are for copy";
  if (op == LinalgOp::gels && job.rows() < job.n) return "gels: A has at least as many rows as columns";
  if (arguments.nrhs > 0 && !job.rhs_file.empty())
    return "--nrhs and --rhs exclude each other: the file has its columns";
  if (job.n > 0 && !job.matrix_file.empty()) return "-n and --matrix exclude each other: the file has its size";
  if (job.n == 0 && job.matrix_file.empty()) return "say how large the matrix is with -n, or give one with --matrix";
  if (!job.out_file.empty() && (arguments.precisions.size() > 1 || jobs_of(arguments).size() > 1))
    return "--out takes one precision, one size and one tile";
  if (arguments.emulated_rate > 0) {
    const bool known = op == LinalgOp::potrf || op == LinalgOp::gemm || op == LinalgOp::trsm || op == LinalgOp::syrk ||
                       op == LinalgOp::herk || op == LinalgOp::geqrf ||
                       (op == LinalgOp::getrf && job.pivoting == Pivoting::none);
    if (!known) return "--emulate-kernels is for potrf, gemm, trsm, syrk, herk, geqrf, and getrf without pivoting";
    if (job.check || !job.out_file.empty()) return "--emulate-kernels computes nothing that --check or --out could use";
    if (arguments.precisions.size() > 1) return "--emulate-kernels takes one precision";
  }
  for (const Places& places : {arguments.places, arguments.to})
    if (!places.file.empty() && (places.p > 0 || places.q > 0 || !places.speeds.empty()))
      return "a distribution and a grid of ranks exclude each other: the file says which rank owns each tile";
  return "";
}

/// Makes kernels take the time of their operations at the requested rate; empty: kernels run.
runtime::Emulation emulation_of(const LinalgArguments& arguments) {
  if (arguments.emulated_rate == 0) return {};
  const char precision = arguments.precisions.front()[0];
  const double operations_per_ns = arguments.emulated_rate / (precision == 'c' || precision == 'z' ? 4 : 1);
  const runtime::VirtualPlace* const place = runtime::VirtualPlace::current();
  const bool is_simulated = place != nullptr && !place->computes();
  return [operations_per_ns, is_simulated](const runtime::EmulatedTask& task) -> std::optional<std::int64_t> {
    const auto operations = linalg::kernel_operations(task.codelet, task.data);
    // In a simulation nobody reads what the others would make.
    if (!operations) return is_simulated ? std::optional<std::int64_t>(0) : std::nullopt;
    return static_cast<std::int64_t>(*operations / operations_per_ns);
  };
}

/// Columns by the speeds of ranks. Errors: numbers that are no speeds of all ranks, or no multiple of P of them.
base::Result<linalg::Distribution> distribution_by_speed(const LinalgJob& job, const Places& places,
                                                         std::uint32_t ranks) {
  const auto wrong = [](std::string what) { return base::Error{base::ErrorCode::invalid_argument, std::move(what)}; };
  std::vector<double> speeds;
  for (const std::string& word : places.speeds) {
    const auto times = word.find('x');
    const auto count = times == word.npos ? 1 : base::number_of<std::uint32_t>(word.substr(0, times)).value_or(0);
    const auto speed = base::number_of<double>(times == word.npos ? word : word.substr(times + 1)).value_or(0);
    if (count == 0 || count > ranks || !(speed > 0 && speed < 1e12))
      return wrong(
          fmt::format("--speeds: '{}' is no speed of some of {}: write 14x1,7x2.5", word, counted(ranks, "rank")));
    speeds.insert(speeds.end(), count, speed);
  }
  const std::uint32_t p = std::max(places.p, 1U);
  if (speeds.size() != ranks || ranks % p != 0 || places.q > 0)
    return wrong(fmt::format("--speeds has {} for {}: each has one, in columns of P ranks (--p), without --q",
                             speeds.size(), counted(ranks, "rank")));
  return linalg::Distribution::columns_by_speed(speeds, (job.n + job.tile - 1) / job.tile, p);
}

/// The owner of each tile among `ranks` ranks. Errors: a file, or a grid of another number of ranks.
base::Result<linalg::Distribution> distribution_of(const LinalgJob& job, const Places& places, std::uint32_t ranks) {
  using linalg::Distribution;
  if (!places.file.empty()) {
    auto read = Distribution::from_file(places.file);
    if (!read || read.value().ranks() <= ranks) return read;
    return base::Error{base::ErrorCode::invalid_argument,
                       fmt::format("{} names rank {}, but the job has {}", places.file, read.value().ranks() - 1,
                                   counted(ranks, "rank"))};
  }
  if (!places.speeds.empty()) return distribution_by_speed(job, places, ranks);
  Distribution::Grid grid = Distribution::squarest(ranks);
  if (places.p > 0) grid = {places.p, places.q > 0 ? places.q : std::max(1U, ranks / places.p)};
  else if (places.q > 0) grid = {std::max(1U, ranks / places.q), places.q};
  if (grid.p * grid.q != ranks)
    return base::Error{
        base::ErrorCode::invalid_argument,
        fmt::format("a grid of {} x {} does not fit {}; P times Q must be their number", grid.p, grid.q,
                    counted(ranks, "rank"))};
  if (ranks == 1) return Distribution();
  if (job.op != LinalgOp::stencil) return Distribution::block_cyclic(grid);
  const auto tiles = [&](std::size_t size) { return (size + job.tile - 1) / job.tile; };
  return Distribution::contiguous(grid, {.rows = tiles(job.rows()), .cols = tiles(job.n)});
}

/// Fills in the owners of tiles. Errors: as `distribution_of`.
base::Result<void> distribute(const LinalgArguments& arguments, std::uint32_t ranks, LinalgJob& job) {
  for (const auto& [places, distribution] :
       {std::pair{&arguments.places, &job.distribution}, std::pair{&arguments.to, &job.target}}) {
    const bool unchanged = distribution == &job.target && !places->given();
    auto found = unchanged ? job.distribution : distribution_of(job, *places, ranks);
    if (!found) return found.error();
    *distribution = std::move(found).value();
  }
  return {};
}

Measurement measurement_of(const LinalgArguments& arguments, const LinalgJob& job, char precision,
                           const LinalgOutcome& outcome, Runtime& rt) {
  Measurement measurement;
  measurement.name = arguments.op;
  measurement.unit = is_copy(job.op) || job.op == LinalgOp::stencil ? "GB/s" : "GFlop/s";
  for (const double seconds : outcome.seconds) measurement.samples.push_back(outcome.work / seconds * 1e-9);
  measurement.params = {{"n", outcome.n},
                        {"nb", job.tile},
                        {"precision", std::string(1, precision)},
                        {"uplo", arguments.uplo},
                        {"ranks", rt.size()},
                        {"workers", rt.worker_count()},
                        {"sched", rt.config().get_string("sched")},
                        {"info", outcome.info}};
  if (outcome.m != outcome.n) measurement.params["m"] = outcome.m;
  if (outcome.nrhs > 0) measurement.params["nrhs"] = outcome.nrhs;
  if (is_lu(job.op)) measurement.params["pivoting"] = arguments.pivoting;
  if (outcome.iterations) measurement.params["iterations"] = *outcome.iterations;
  if (outcome.reached)
    measurement.params[job.op == LinalgOp::cg ? "relative_residual" : "change"] = *outcome.reached;
  if (job.op == LinalgOp::copy) measurement.params["travelling_bytes"] = outcome.travelling;
  if (!job.matrix_file.empty()) measurement.params["matrix"] = job.matrix_file;
  measurement.params["seconds"] = median(outcome.seconds);
  measurement.details = {{"seconds", outcome.seconds}};
  if (arguments.emulated_rate > 0) measurement.params["emulated_gflops"] = arguments.emulated_rate;
  if (outcome.residual) measurement.params["residual"] = *outcome.residual;
  return measurement;
}

void print_heading() {
  fmt::print("{:<7} {:>9} {:>9} {:>6} {:>6} {:>6} {:>6} {:>8} {:>11} {:>9} {:>9} {:>9} {:<8} {:>9}\n", "op",
             "precision", "n", "nb", "nrhs", "steps", "ranks", "workers", "seconds", "median", "min", "max", "unit",
             "residual");
}

/// The size of the matrices for the table: their order, or m x n.
std::string size_of(const Json& params) {
  const std::string n = fmt::format("{}", params["n"].unsigned_number());
  return params.contains("m") ? fmt::format("{}x{}", params["m"].unsigned_number(), n) : n;
}

void print_row(const Measurement& measurement) {
  const Json& params = measurement.params;
  const auto [least, most] = std::minmax_element(measurement.samples.begin(), measurement.samples.end());
  const auto count = [&](const char* name) {
    return params.contains(name) ? fmt::format("{}", params[name].unsigned_number()) : "-";
  };
  fmt::print("{:<7} {:>9} {:>9} {:>6} {:>6} {:>6} {:>6} {:>8} {:>11.6f} {:>9.2f} {:>9.2f} {:>9.2f} {:<8} {:>9}\n",
             measurement.name, params["precision"].text(), size_of(params), params["nb"].unsigned_number(),
             count("nrhs"), count("iterations"), count("ranks"), params["workers"].unsigned_number(),
             params["seconds"].number(),
             median(measurement.samples), *least, *most, measurement.unit,
             params.contains("residual") ? fmt::format("{:.2g}", params["residual"].number()) : "-");
}

/// Whether the result is right; if not, writes the cause to `log`, which may be null.
bool accepted(LinalgOp op, const LinalgOutcome& outcome, base::Log* log) {
  if (outcome.info != 0 && is_lu(op)) {
    if (log != nullptr) log->error("pivot {} of the factorisation is zero (info = {})", outcome.info, outcome.info);
    return false;
  }
  if (outcome.info != 0 && op == LinalgOp::cg) {
    if (log != nullptr)
      log->error("the matrix is not positive definite: p^H A p of iteration {} is not a positive number (info = {})",
                 outcome.info, outcome.info);
    return false;
  }
  if (outcome.info != 0) {
    if (log != nullptr)
      log->error("the matrix is not positive definite: its leading minor of order {} is not (info = {})", outcome.info,
                 outcome.info);
    return false;
  }
  if (!outcome.converged) {
    if (log != nullptr)
      log->error("not converged after {}: {} is {:.3g}; allow more with --iterations, or a larger --tolerance",
                 counted(outcome.iterations.value_or(0), "iteration"),
                 op == LinalgOp::cg ? "||r|| / ||b||" : "the largest change of a point", outcome.reached.value_or(0));
    return false;
  }
  // A NaN fails too.
  if (outcome.residual && !(*outcome.residual <= linalg::residual_limit)) {
    if (log != nullptr) log->error("the scaled residual {:.3g} is above {}", *outcome.residual, linalg::residual_limit);
    return false;
  }
  return true;
}

/// Runs a job in one precision, and shows it. False: the others need not run.
bool run_one(const LinalgArguments& arguments, const LinalgJob& job, char precision, Runtime& rt,
             std::vector<Measurement>& measurements, ToolContext& context) {
  const bool speaks = rt.rank() == 0;
  const auto outcome = run_in_precision(rt, job, precision);
  if (!outcome) {
    if (speaks) context.log.error("{}", outcome.error().message);
    context.exit_status = outcome.error().code == base::ErrorCode::invalid_argument ? wrong_use : failure;
    return false;
  }
  if (!accepted(job.op, outcome.value(), speaks ? &context.log : nullptr)) context.exit_status = failure;
  if (outcome.value().seconds.empty()) return true;  // potrs, whose matrix could not be factorised
  measurements.push_back(measurement_of(arguments, job, precision, outcome.value(), rt));
  if (arguments.json || !speaks) return true;
  if (measurements.size() == 1) {
    if (arguments.emulated_rate > 0)
      fmt::print("emulated: each kernel sleeps for its operations at {} GFlop/s instead of computing\n",
                 arguments.emulated_rate);
    print_heading();
  }
  print_row(measurements.back());
  return true;
}

/// A line for each job and precision.
base::Result<void> write_csv(const std::string& path, const std::vector<Measurement>& measurements) {
  auto file = OutFile::create(path);
  if (!file.ok()) return file.error();
  file.value().print("op,precision,m,n,nb,ranks,workers,seconds,median,unit\n");
  for (const Measurement& one : measurements) {
    const Json& params = one.params;
    const char* const rows = params.contains("m") ? "m" : "n";
    file.value().print("{},{},{},{},{},{},{},{:.9g},{:.9g},{}\n", one.name, params["precision"].text(),
                       params[rows].unsigned_number(), params["n"].unsigned_number(), params["nb"].unsigned_number(),
                       params["ranks"].unsigned_number(), params["workers"].unsigned_number(),
                       params["seconds"].number(), median(one.samples), one.unit);
  }
  return file.value().close();
}

void run(const LinalgArguments& arguments, ToolContext& context) {
  static const auto topology = base::Topology::discover();  // simulated ranks share it
  if (!topology) {
    context.log.error("{}", topology.error().message);
    context.exit_status = failure;
    return;
  }
  base::restrict_blas_threads();
  static const int threads = linalg::observed_blas_threads();
  if (threads > 1)
    context.log.warn(
        "the BLAS library uses {} threads for one call although it was set to use one: they compete with the workers",
        threads);

  // The runtime reads the same --tandem.* arguments that main() has taken out.
  std::vector<std::string> words = context.arguments;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  Options options;
  if (arguments.workers > 0) options.workers = arguments.workers;
  options.emulation = emulation_of(arguments);
  Runtime rt(argc, argv.data(), options);

  // Rank 0 prints for all.
  const bool speaks = rt.rank() == 0;
  if (const std::string advice = linalg::blas_advice(); speaks && !advice.empty()) context.log.warn("{}", advice);
  std::vector<Measurement> measurements;
  for (LinalgJob& job : jobs_of(arguments)) {
    if (const auto distributed = distribute(arguments, rt.size(), job); !distributed) {
      if (speaks) context.log.error("{}", distributed.error().message);
      context.exit_status = wrong_use;
      return;
    }
    for (const std::string& precision : arguments.precisions)
      if (!run_one(arguments, job, precision[0], rt, measurements, context)) return;
  }
  if (!speaks) return;
  if (arguments.json) print(report("linalg " + arguments.op, topology.value(), measurements));
  if (arguments.csv.empty()) return;
  if (const auto written = write_csv(arguments.csv, measurements); !written.ok()) {
    context.log.error("{}", written.error().message);
    context.exit_status = failure;
  }
}

void add_sizes(Subcommand command, LinalgArguments& arguments) {
  command.add_option("-n", arguments.sizes, "Orders of the matrices: 4800, or 4800:40000:3200, separated by commas")
      .list()
      .check(complaint_of_size)
      .type_name("N,...");
  command.add_option("-m", arguments.rows, "geqrf, gels, stencil and copy: rows of A (default: n)").positive();
  command.add_option("--nb", arguments.tiles, "Orders of a tile, as -n")
      .list()
      .check(complaint_of_size)
      .type_name("NB,...")
      .show_default();
}

void add_places(Subcommand command, LinalgArguments& arguments) {
  command
      .add_option("--p", arguments.places.p,
                  "On several ranks: rows of the process grid (default: as square as possible)")
      .positive();
  command.add_option("--q", arguments.places.q, "On several ranks: columns of the process grid").positive();
  command.add_option("--distribution", arguments.places.file,
                      "On several ranks: file with the rank of each tile, one line for each row of tiles");
  command
      .add_option(
          "--speeds", arguments.places.speeds,
          "On several ranks: their speeds, as 14x1,7x2.5; each column of P ranks gets tile columns by its slowest")
      .list();
  command.add_option("--to-p", arguments.to.p, "copy on several ranks: rows of the process grid of the target")
      .positive();
  command.add_option("--to-q", arguments.to.q,
                     "copy on several ranks: columns of that grid (default: each tile stays on its rank)")
      .positive();
  command.add_option("--to-distribution", arguments.to.file,
                     "copy on several ranks: file with the rank of each tile of the target");
}

}  // namespace

void add_linalg(Subcommand app, ToolContext& context) {
  Subcommand command =
      app.add_subcommand("linalg", "Run one operation of linear algebra; print time, GFlop/s and residual");
  auto arguments = std::make_shared<LinalgArguments>();
  LinalgJob& job = arguments->job;
  std::vector<std::string> names;
  for (const auto& [name, op] : ops) names.push_back(name);
  command
      .add_option("OP", arguments->op,
                  "cg, copy, gels, gemm, geqrf, gesv, getrf, herk, lacpy, posv, potrf, potrs, stencil, syrk or trsm")
      .required()
      .one_of(names);
  add_sizes(command, *arguments);
  command.add_option("--precision", arguments->precisions, "Any of s, d, c, z, separated by commas")
      .list().one_of({"s", "d", "c", "z"}).show_default();
  command.add_option("--uplo", arguments->uplo, "Triangle of A that is read")
      .one_of({"lower", "upper"})
      .show_default();
  command.add_option("--pivoting", arguments->pivoting,
                     "Pivoting of getrf and gesv; with none, generated matrices are diagonally dominant")
      .one_of({"tournament", "none"})
      .show_default();
  command
      .add_option("--nrhs", arguments->nrhs, "Right-hand sides (default: 1 for potrs, posv, gesv and gels, n for trsm)")
      .positive();
  command.add_option("--repetitions", arguments->repetitions,
                      "Measured runs (default: 5 after one that warms up; 1 with --matrix)")
      .positive();
  command.add_option("--workers", arguments->workers, "Number of workers, as --tandem.workers").positive();
  command
      .add_option("--iterations", job.iterations, "Largest number of iterations (default: n for cg, 100 for stencil)")
      .positive();
  command.add_option(
      "--tolerance", job.tolerance,
      "cg: stop at this ||r|| / ||b|| (default: 10 eps; 0: never). stencil: stop when no point changes by more "
      "in a step (default: never)");
  add_places(command, *arguments);
  command.add_option("--emulate-kernels", arguments->emulated_rate,
                      "Kernels sleep for the time of their operations at this rate in GFlop/s, instead of computing")
      .between(1e-3, 1e6);
  command.add_option("--seed", job.seed, "Seed of generated matrices").show_default();
  command.add_flag("--check", job.check, "Compute the residual, scaled as in LAPACK's testers (at most 30 is right)");
  command.add_option("--matrix", job.matrix_file,
                     "potrf, potrs, posv, getrf, gesv, cg: read A from this Matrix Market file");
  command.add_option("--rhs", job.rhs_file,
                     "potrs, posv, gesv, cg: read B from this Matrix Market file (default: random)");
  command.add_option("--out", job.out_file,
                      "Write a Matrix Market file: the solution of potrs, posv, gesv and cg, the factor of potrf");
  command.add_flag("--json", arguments->json, "Print a JSON object");
  command.add_option("--csv", arguments->csv, "Write the results of all sizes into this file").type_name("FILE");
  command.callback([arguments, &context] {
    arguments->job.op = ops.at(arguments->op);
    arguments->job.uplo = arguments->uplo == "lower" ? linalg::Uplo::lower : linalg::Uplo::upper;
    arguments->job.pivoting = arguments->pivoting == "none" ? Pivoting::none : Pivoting::tournament;
    if (arguments->nrhs > 0) arguments->job.nrhs = arguments->nrhs;
    if (arguments->rows > 0) arguments->job.m = arguments->rows;
    const unsigned usual = arguments->job.matrix_file.empty() ? 5 : 1;
    arguments->job.repetitions = arguments->repetitions > 0 ? arguments->repetitions : usual;
    for (const LinalgJob& one : jobs_of(*arguments))
      if (const std::string what = contradiction(*arguments, one); !what.empty()) {
        context.log.error("linalg {}: {}", arguments->op, what);
        context.exit_status = wrong_use;
        return;
      }
    run(*arguments, context);
  });
}

}  // namespace tandem::tools
