// tools/bench/command.cpp: `tandem bench NAME`: the table of benchmarks. Each runs Tandem's program and its peers' in
// turns and compares them.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "tools/bench/table.hpp"

namespace tandem::tools {
namespace {

using Suites = std::vector<SuitePlan>;
using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr const char* mpi_ranks = "mpi_ranks {ranks}";
constexpr const char* tandem_ranks = "tandem_ranks {self} {ranks}";
constexpr const char* namespaces = "netns run {ranks} --rate {rate} --";

BenchOption rate_of_each_rank() {
  return {"--rate", "200mbit", "Rate of each rank's network namespace in both directions: 200mbit, 1gbit, none"};
}

BenchPlan tasks() {
  return {.name = "tasks",
          .help = "Cost of a task: submission, dependencies, execution of an empty kernel",
          .options = {{"--flow", "all", "Only this task flow",
                       Words{"all", "independent_bare", "independent", "chain", "wavefront", "cholesky",
                             "cholesky_replay", "bytes_per_task"}}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "cost of a task, empty kernels", .params = {{"workers", "{workers}"}}},
                     .words = "--workers {workers} --repetitions 1 --flow {flow}",
                     .programs = {{}, {"starpu"}, {"openmp"}, {"libomp"}, {"tbb"}, {"taskflow"}}}};
          }};
}

BenchPlan wake() {
  return {.name = "wake",
          .help = "Processor time of idle workers, and how soon they start a first task",
          .options = {{"--trials", 100U, "First tasks per round"}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "idle workers, and the first task after idleness",
                               .params = {{"workers", "{workers}"}, {"trials", "{trials}"}}},
                     .words = "--workers {workers} --repetitions 1 --trials {trials}",
                     .programs = {{}, {"starpu"}, {"openmp"}, {"libomp"}, {"tbb"}}}};
          }};
}

BenchPlan events() {
  return {.name = "trace",
          .help = "Cost of recording a trace event",
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {"cost of an event with two arguments, for the thread that records it"},
                     .words = "--repetitions 1",
                     .programs = {{}, {"fxt"}, {"lttng"}, {"bare"}}}};
          }};
}

BenchPlan cholesky() {
  return {
      .name = "cholesky",
      .help = "GFlop/s of the Cholesky factorisation, and the upper bound by its kernels",
      .options = {{"-n", Numbers{8192, 4096}, "Orders of the matrices, separated by commas"},
                  {"--nb", Numbers{}, "Orders of the tiles, one for each matrix (default: a sixteenth of its order)"},
                  {"--precision", "d", "d or s", Words{"d", "s"}}},
      .suites = [](BenchValues& values) -> Suites {
        if (values.get<unsigned>("nb") == 0) values["nb"] = std::max(1U, values.get<unsigned>("n") / 16);
        const std::string words = "--nb {nb} --workers {workers} --precision {precision} --repetitions 1";
        return {{.suite = {.title = "Cholesky factorisation, {precision}, n = {n}, tile {nb}",
                           .higher_is_better = true,
                           .params = {{"n", "{n}"}, {"nb", "{nb}"}, {"precision", "{precision}"},
                                      {"workers", "{workers}"}}},
                 .words = "--n {n} " + words,
                 .programs = {{"tandem", "tandem", "linalg potrf -n {n} --json " + words},
                              {"openmp"},
                              {"libomp"},
                              {"starpu", {}, {}, {}, {{"STARPU_SCHED", "lws"}}},
                              {"starpu_prio", "peer_cholesky_starpu", {}, {}, {{"STARPU_SCHED", "prio"}}},
                              {"blas"},
                              {"kernels"}}}};
      },
      .each = {"n"}};
}

BenchPlan device() {
  return {.name = "device",
          .help = "Copies and kernels of an OpenCL device: alone, and beside each other",
          .options = {{"--kib", 1024U, "Size of a block"},
                      {"--blocks", 32U, "Blocks that go to and fro"},
                      {"--steps", 20U, "Operations of the kernel for each number, two flops each"}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "data to an OpenCL device and back, {blocks} blocks of {kib} KiB",
                               .params = {{"kib", "{kib}"}, {"blocks", "{blocks}"}, {"steps", "{steps}"}}},
                     .words = "--kib {kib} --blocks {blocks} --steps {steps} --repetitions 1",
                     .programs = {{}, {"bare"}}}};
          }};
}

BenchPlan cuda() {
  return {.name = "cuda",
          .help = "Products and Cholesky factorisations on a CUDA device: in tiles, beside one call of its library, "
                  "and out of core",
          .options = {{"-n", 32'768U, "Order of the matrices"}, {"--nb", 2'048U, "Order of a tile"}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "linear algebra on a CUDA device, d, n = {n}, tile {nb}",
                               .higher_is_better = true,
                               .params = {{"n", "{n}"}, {"nb", "{nb}"}},
                               .warms_up = false},
                     .words = "--n {n} --tile {nb}",
                     .programs = {{"tandem", "bench_cuda"}, {"cudastf"}}}};
          }};
}

BenchPlan hybrid() {
  return {.name = "hybrid",
          .help = "Products and factorisations on cores, on a CUDA device, and on both: is the whole as fast as the "
                  "better part?",
          .options = {{"-n", Numbers{2048, 4096, 8192, 16'384}, "Orders of the matrices, separated by commas"},
                      {"--nb", 0U, "Order of a tile (default: a sixteenth of the matrix, from 256 to 2048)"}},
          .suites = [](BenchValues& values) -> Suites {
            return {{.suite = {.title = "linear algebra on cores, on a CUDA device, and on both, d, n = {n}",
                               .higher_is_better = true,
                               .params = {{"n", "{n}"}},
                               .warms_up = false},
                     .words = values.get<unsigned>("nb") == 0 ? "--n {n}" : "--n {n} --tile {nb}",
                     .programs = {{"tandem", "bench_hybrid"}}}};
          },
          .each = {"n"}};
}

/// Folder of the traces of `pingpong --traced`, until all are measured.
std::string traces_folder() {
  return (std::filesystem::temp_directory_path() / fmt::format("bench-pingpong-{}", ::getpid())).string();
}

/// Two polling processes over one transport, then two that sleep between messages; or small messages untraced, and
/// with everything recorded into a flight recorder.
Suites pingpong_suites(BenchValues& values) {
  const std::string words = "--transport {transport} --repetitions 1";
  const std::string small = "--transport {transport} --repetitions 3 --least 4 --most 4";
  const Json params{{"transport", "{transport}"}};
  const StabilityProbe flag{{}, "a flag from processor to processor"};
  const std::string flag_words = "--repetitions 1 --most 4";
  if (values.get<bool>("traced"))
    return {{.suite = {.title = "small messages between two processes, {transport}, untraced and with everything "
                                "recorded",
                       .params = params,
                       .name_ends_in_bytes = true,
                       .stability_probe = flag},
             .words = small,
             .programs = {{}, {"traced", "bench_pingpong_tandem", {}, {}, {{"PINGPONG_TRACE", traces_folder()}}}},
             .stability_probe = flag_words}};
  SuitePlan polling{.suite = {.title = "messages between two processes, {transport}, both polling",
                              .params = params,
                              .name_ends_in_bytes = true,
                              .parts = {},
                              .stability_probe = flag},
                    .words = words,
                    .programs = {{}, {"openmpi", "peer_{bench}_mpi"}},
                    .stability_probe = flag_words};
  for (const char* bytes : {"4", "1024", "4096", "65536", "439296", "8388608", "67108864"})  // as in harness.hpp
    polling.suite.parts.push_back({"--least", bytes, "--most", bytes});
  if (values.get<std::string>("transport") == "shm")
    polling.programs.push_back({"openmpi_copy", "peer_{bench}_mpi", "--transport shm_copy --repetitions 1"});
  polling.programs.insert(polling.programs.end(), {{"ucx"}, {"ucx_perftest"}, {"bare"}});
  return {std::move(polling),
          {.suite = {.title = "messages between two processes, {transport}, to a side that sleeps",
                     .params = params,
                     .name_ends_in_bytes = true},
           .words = words + " --sleep",
           .programs = {{}, {"bare"}}}};
}

BenchPlan pingpong() {
  return {.name = "pingpong",
          .help = "Half round trips of 4 bytes to 64 MiB, and one-way message rates",
          .options = {{"--transport", Words{"shm", "tcp"}, "shm, tcp, separated by commas", Words{"shm", "tcp"}},
                      {"--traced", false,
                       "Only Tandem's small messages: without a trace, and while both sides record all events"}},
          .suites = pingpong_suites,
          .each = {"transport"},
          .clean_up = [] {
            std::error_code ignored;
            std::filesystem::remove_all(traces_folder(), ignored);
          }};
}

Suites flow_pingpong_suites(BenchValues& values) {
  values["peer_trips"] = std::max(1U, values.get<unsigned>("trips") / 20);  // each may take milliseconds
  const auto suite = [](bool bound) -> SuitePlan {
    const std::string place = bound ? "each on a core" : "as the system places them", end = bound ? " --bound" : "";
    return {.suite = {.title = "half a round trip between tasks of two ranks, {ranks} ranks, " + place,
                      .params = {{"ranks", "{ranks}"}, {"bytes", "{bytes}"}, {"bound", bound}}},
            .words = "--bytes {bytes} --trips {trips} --repetitions 3" + end,
            .programs = {{.launchers = {tandem_ranks}},
                         {"starpu_mpi", "peer_{bench}_starpu",
                          "--bytes {bytes} --trips {peer_trips} --repetitions 3" + end, {mpi_ranks}}}};
  };
  return {suite(false), suite(true)};
}

BenchPlan flow_pingpong() {
  return {.name = "flow_pingpong",
          .help = "What the task flow adds to a message between tasks of two ranks",
          .options = {{"--ranks", Numbers{2, 4},
                       "Even numbers of ranks, separated by commas; all pairs exchange messages at once"},
                      {"--bytes", 8U, "Bytes of the message"},
                      {"--trips", 1000U, "Round trips per sample, all submitted before the first one runs"}},
          .suites = flow_pingpong_suites,
          .each = {"ranks"}};
}

BenchPlan arrival() {
  return {.name = "arrival",
          .help = "Delay of a message to a rank whose workers are idle or compute",
          .options = {{"--busy", Numbers{1, 2}, "Numbers of workers of the receiving rank, separated by commas"},
                      {"--messages", 300U, "Messages of each kind in a round"}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "a message to a rank of {busy} workers that rest or compute",
                               .params = {{"workers", "{busy}"}}},
                     .words = "--workers {busy} --messages {messages} --repetitions 1",
                     .programs = {{.launchers = {"tandem_ranks {self} 2"}}}}};
          },
          .each = {"busy"}};
}

BenchPlan polling() {
  return {.name = "polling",
          .help = "Latency of small messages beside idle workers that poll, sleep or are paused",
          .options = {{"--idle", 1U, "Idle workers of each rank"}, {"--trips", 2000U, "Round trips of a sample"}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "half a round trip of 4 bytes beside {idle} idle workers on each of two ranks",
                               .params = {{"idle_workers", "{idle}"}}},
                     .words = "--workers {idle} --trips {trips} --repetitions 1",
                     .programs = {{.launchers = {"tandem_ranks {self} 2"}}}}};
          }};
}

/// Two ranks of ours, and two of Open MPI: over shm or tcp, or, if `transport` is empty, in namespaces.
std::vector<ProgramPlan> two_ranks(const std::string& transport, const std::string& peer_words = "") {
  Words ours{"tandem_ranks {self} 2"}, mpi{"mpi_ranks 2"};
  Environment environment;
  if (transport.empty())
    for (Words* const launchers : {&ours, &mpi}) launchers->insert(launchers->begin(), "netns run 2 --rate {rate} --");
  else environment = {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", transport == "shm" ? "vader,self" : "tcp,self"}};
  if (transport == "tcp") environment.emplace_back("OMPI_MCA_btl_tcp_if_include", "lo");
  return {{.launchers = ours}, {"openmpi", "peer_{bench}_mpi", peer_words, mpi, environment}};
}

BenchPlan burst() {
  return {.name = "burst",
          .help = "Many pending requests, received in the reverse order of their sends",
          .options = {{"--most", 200'000U, "Largest number of requests of Tandem"},
                      {"--peer-most", 10'000U,
                       "Largest number of requests of the peer, whose time may grow with its square"}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "many requests at once, two processes on shm: time per message",
                               .params = {{"transport", "shm"}, {"bytes", 1}}},
                     .words = "--most {most} --repetitions 3",
                     .programs = two_ranks("shm", "--most {peer_most} --repetitions 3")}};
          }};
}

BenchPlan priority() {
  return {.name = "priority",
          .help = "An urgent small message behind a large one",
          .options = {{"--transport", Words{"shm", "tcp"}, "shm, tcp, separated by commas", Words{"shm", "tcp"}}},
          .suites = [](BenchValues& values) -> Suites {
            return {{.suite = {.title = "an urgent message of 1 KiB behind 64 MiB, {transport}",
                               .params = {{"transport", "{transport}"}, {"bytes", 1024}, {"behind_bytes", 64 << 20}}},
                     .words = "--transport {transport} --repetitions 3",
                     .programs = two_ranks(values.get<std::string>("transport"))}};
          },
          .each = {"transport"}};
}

BenchPlan overlap() {
  return {
      .name = "overlap",
      .help = "How much of a transfer is hidden by computation on both sides (needs root)",
      .options = {{"--bytes", 16U << 20, "Size of the transfer"},
                  {"--rate", "200mbit", "Rate of each of the two namespaces: 200mbit, 1gbit, none"}},
      .suites = [](BenchValues& values) -> Suites {
        const auto suite = [](bool shm) -> SuitePlan {
          const std::string where = shm ? "shm" : "two namespaces of {rate} each";
          return {.suite = {.title = "share of a transfer of {bytes} bytes that computation hides, " + where,
                            .higher_is_better = true,
                            .params = {{"transport", shm ? "shm" : "tcp"}, {"bytes", "{bytes}"},
                                       {"rate", shm ? "none" : "{rate}"}}},
                  .words = std::string("--bytes {bytes} --repetitions 1") + (shm ? " --transport shm" : ""),
                  .programs = two_ranks(shm ? "shm" : "")};
        };
        return {suite(values.get<std::string>("rate").empty()), suite(true)};
      }};
}

BenchPlan urgent() {
  const auto way = [](const char* name, const char* port_priorities, const char* announce, const char* incoming) {
    return ProgramPlan{name, "bench_urgent_tandem", {}, {namespaces, tandem_ranks},
                       {{"TANDEM_COMM_PORT_PRIORITIES", port_priorities}, {"TANDEM_ANNOUNCE", announce},
                        {"TANDEM_INCOMING", incoming}}};
  };
  return {
      .name = "urgent",
      .help = "What urgent tasks gain when bulk makes way, when they are announced, and when workers wait (needs root)",
      .options = {{"--ranks", 6U, "Number of ranks; all but two only receive bulk data", Range{3, 250}},
                  rate_of_each_rank(),
                  {"--repetitions", 3U, "Chains in each run"}},
      .suites = [way](BenchValues&) -> Suites {
        return {{.suite = {.title = "steps of a chain between two ranks of {ranks}, beside bulk for the others, "
                                    "namespaces of {rate} each",
                           .params = {{"ranks", "{ranks}"}, {"rate", "{rate}"}},
                           .name_as_param = "way"},
                 .words = "--repetitions {repetitions}",
                 .programs = {way("all hints", "true", "true", "true"), way("announced", "true", "true", "false"),
                              way("port priorities", "true", "false", "false"),
                              way("shared", "false", "false", "false")}}};
      }};
}

/// StarPU's example is in single precision, so ours beside it is, too. Two cores share the ranks' work, for any number
/// of ranks.
Suites ranks_suites(BenchValues& values) {
  const std::string words = "--nb {nb} --workers 1 --precision {precision} --repetitions 1";
  SuitePlan made{
      .suite = {.title = "Cholesky factorisation, {precision}, n = {n}, tile {nb}, {ranks} ranks of one worker",
                .higher_is_better = true,
                .params = {{"n", "{n}"}, {"nb", "{nb}"}, {"precision", "{precision}"}, {"ranks", "{ranks}"},
                           {"workers", 1}}},
      .words = {},
      .programs = {{"tandem", "tandem", "linalg potrf --tandem.sched=prio -n {n} --json " + words, {tandem_ranks}}}};
  if (values.get<std::string>("precision") == "s")
    made.programs.push_back({"starpu_mpi", "peer_cholesky_ranks_starpu", "--ranks {ranks} --n {n} --nb {nb}"});
  made.programs.push_back({"kernels", "peer_cholesky_kernels",
                           "--n {n} --nb {nb} --workers 2 --precision {precision} --repetitions 1"});
  return {std::move(made)};
}

BenchPlan ranks() {
  return {.name = "ranks",
          .help = "GFlop/s of a Cholesky factorisation on several ranks",
          .options = {{"--ranks", Numbers{2, 4}, "Numbers of ranks, separated by commas"},
                      {"-n", Numbers{4096, 8320, 8192}, "Orders of the matrices, separated by commas"},
                      {"--nb", Numbers{256, 320, 512}, "Orders of the tiles, one for each matrix"},
                      {"--precision", Words{"d", "s"}, "d, s, separated by commas", Words{"d", "s"}}},
          .suites = ranks_suites,
          .each = {"precision", "n", "ranks"}};
}

/// Readers that start before their rank forwards the data, and readers that wait for it.
Suites readers_suites(BenchValues& values) {
  values["ranks"] = values.get<unsigned>("recipients") + 1;
  SuitePlan made{.suite = {.title = "mean start of the readers of {bytes} bytes on {recipients} ranks, namespaces of "
                                    "{rate} each; \"wait\": after forwarding",
                           .params = {{"bytes", "{bytes}"}, {"recipients", "{recipients}"}, {"rate", "{rate}"}},
                           .name_as_param = "tree"},
                 .words = "--bytes {bytes} --repetitions {repetitions}",
                 .programs = {}};
  for (const std::string& tree : values.get<Words>("trees"))
    for (const bool early : {true, false}) {
      if (!early && tree == "off") continue;  // no rank forwards
      const std::string name = early ? tree : tree + " wait";
      made.programs.push_back({made.programs.empty() ? "tandem" : name, "bench_readers_tandem", {},
                               {namespaces, tandem_ranks},
                               {{"TANDEM_BROADCAST", tree}, {"TANDEM_EARLY_READ", early ? "true" : "false"}}});
    }
  return {std::move(made)};
}

BenchPlan readers() {
  return {.name = "readers",
          .help = "When the tasks that read broadcast data start, by rank: before or after forwarding (needs root)",
          .options = {{"--bytes", 409'600U, "Size of the data"},
                      {"--recipients", 38U, "Ranks that receive the data", Range{1, 250}},
                      {"--trees", Words{"ordered", "binary", "binomial", "flat", "off"},
                       "Routing trees, separated by commas",
                       Words{"off", "flat", "chain", "binary", "kary", "binomial", "knomial", "two_tree", "delegate",
                             "two_groups", "automatic", "ordered"}},
                      rate_of_each_rank(),
                      {"--repetitions", 3U, "Broadcasts in each run"}},
          .suites = readers_suites,
          .picture = "start times by rank"};
}

/// Factorisations with the broadcasts that the flow detects, and with other trees or none (thesis 4.4.2, 4.4.3). QR is
/// the thesis's: a matrix three times wider than high, with all tiles of a column on one rank.
Suites broadcasts_suites(BenchValues& values) {
  const unsigned tile = values.get<unsigned>("nb");
  const std::string& operation = values.get<std::string>("operations");
  const std::string shape = operation == "geqrf" ? fmt::format("-m {} -n {} --p 1 --q {{ranks}}", 8 * tile, 24 * tile)
                                                 : fmt::format("-n {}", (operation == "gemm" ? 12 : 24) * tile);
  const auto with = [&](const std::string& peer, const std::string& tree) {
    return ProgramPlan{peer, "tandem",
                       "linalg {operations} " + shape + " --nb {nb} --precision s --workers 1 --repetitions 1 --json "
                       "--tandem.sched=prio --tandem.broadcast=" + tree + " --emulate-kernels {emulate_kernels}",
                       {namespaces, tandem_ranks}};
  };
  SuitePlan made{.suite = {.title = "{operations} on {ranks} ranks, namespaces of {rate} each, kernels emulated at "
                                    "{emulate_kernels} GFlop/s",
                           .higher_is_better = true,
                           .params = {{"ranks", "{ranks}"}, {"rate", "{rate}"}, {"nb", "{nb}"},
                                      {"emulated_gflops", "{emulate_kernels}"}}},
                 .words = {},
                 .programs = {with("tandem", "ordered")}};
  for (const std::string& tree : values.get<Words>("trees")) made.programs.push_back(with(tree, tree));
  return {std::move(made)};
}

BenchPlan broadcasts() {
  return {.name = "broadcasts",
          .help = "Gain by detected broadcasts: QR, Cholesky and gemm over slow links (needs root)",
          .options = {{"--ranks", Numbers{16, 36}, "Numbers of ranks of one worker each, separated by commas",
                       Range{2, 250}},
                      {"--operations", Words{"geqrf", "potrf", "gemm"}, "geqrf, potrf, gemm, separated by commas",
                       Words{"geqrf", "potrf", "gemm"}},
                      {"--trees", Words{"off"}, "Routing trees that are compared with `ordered`, separated by commas",
                       Words{"off", "flat", "chain", "binary", "binomial", "two_tree", "automatic"}},
                      rate_of_each_rank(),
                      {"--nb", 320U, "Order of a tile"},
                      {"--emulate-kernels", 5.0,
                       "GFlop/s at which kernels would run: they sleep instead, so that few cores stand for many; 5 "
                       "and 200mbit have the 200 operations a byte of the thesis's machines",
                       Range{1e-3, 1e6}}},
          .suites = broadcasts_suites,
          .each = {"operations", "ranks"}};
}

/// One message to many ranks, along Tandem's trees and by peers. 16384 is a usual segment size of Open MPI's pipeline.
Suites bcast_suites(BenchValues& values) {
  values["ranks"] = values.get<unsigned>("recipients") + 1;
  const std::string& rate = values.get<std::string>("rate");
  const bool on_one_host = rate.empty();
  const std::string where = on_one_host      ? "one host"
                            : rate == "none" ? "namespaces without a limit"
                                             : "namespaces of {rate} each";
  const std::string words =
      std::string("--bytes {bytes} --repetitions {repetitions} --pause-ms ") + (on_one_host ? "2" : "30");
  const char* const segment = values.get<unsigned>("segment") > 0 ? " --segment {segment}" : "";
  SuitePlan made{.suite = {.title = "broadcast of {bytes} bytes to {recipients} recipients, " + where,
                           .params = {{"bytes", "{bytes}"},
                                      {"recipients", "{recipients}"},
                                      {"namespaces", !on_one_host},
                                      {"rate", on_one_host ? "none" : "{rate}"}},
                           .name_as_param = "tree"},
                 .words = words,
                 .programs = {{"tandem", {}, words + " --trees {trees}" + segment, {tandem_ranks}},
                              {"bare", {}, words + " --ranks {ranks}"},
                              {"openmpi", "peer_{bench}_mpi", {}, {mpi_ranks}},
                              {"openmpi_ibcast", "peer_{bench}_mpi", words + " --nonblocking", {mpi_ranks}},
                              {"openmpi_pipeline", "peer_{bench}_mpi", {}, {"mpi_ranks {ranks} --pipeline 16384"}}}};
  if (!values.get<bool>("without_starpu")) made.programs.push_back({"starpu", {}, {}, {mpi_ranks}});
  if (!on_one_host)
    for (ProgramPlan& program : made.programs) program.launchers.insert(program.launchers.begin(), namespaces);
  return {std::move(made)};
}

BenchPlan bcast() {
  return {.name = "bcast",
          .help = "Duration of a broadcast by routing tree, on one host or over slow links",
          .options = {{"--bytes", Numbers{439'296}, "Sizes of the message, separated by commas", Range{1, 1 << 30}},
                      {"--recipients", Numbers{7}, "Numbers of recipients, separated by commas", Range{1, 250}},
                      {"--trees", Words{"automatic", "ordered", "flat", "binomial", "binary", "chain", "two_tree"},
                       "Tandem's routing trees, separated by commas",
                       Words{"automatic", "ordered", "flat", "chain", "binary", "kary", "binomial", "knomial",
                             "two_tree", "delegate", "two_groups"}},
                      {"--rate", "",
                       "Network namespaces with this rate in both directions: 200mbit, 1gbit, none (needs root)"},
                      {"--repetitions", 3U, "Broadcasts in each run"},
                      {"--segment", 0U, "Bytes of Tandem's segments (default: Tandem chooses)"},
                      {"--without-starpu", false, "Leave out StarPU-MPI, which takes long with many ranks"}},
          .suites = bcast_suites,
          .each = {"bytes", "recipients"},
          .picture = "times by number of recipients or by size, and by rank"};
}

/// How well ranks with wrong clocks know one time, and leave a barrier at once.
BenchPlan clock() {
  return {.name = "clock",
          .help = "Error of the global clock under injected drifts, its cost, and barriers",
          .options = {{"--at", Numbers{2},
                       "Seconds after the start at which the error is measured, separated by commas", Range{1, 86'400}},
                      {"--ranks", 2U, "Number of ranks", Range{2, 64}},
                      {"--drift", Words{"constant", "linear", "sinusoidal"},
                       "constant, linear, sinusoidal, separated by commas",
                       Words{"constant", "linear", "sinusoidal"}},
                      {"--transport", "shm", "shm or tcp", Words{"shm", "tcp"}},
                      {"--interval", 1000U, "Milliseconds between two clock measurements"},
                      {"--barriers", 100U, "Number of barriers whose exit times are compared", Range{1, 8192}}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "clocks of {ranks} ranks over {transport}, {drift} drift injected",
                               .params = {{"drift", "{drift}"}, {"ranks", "{ranks}"}, {"transport", "{transport}"},
                                          {"interval_ms", "{interval}"}}},
                     .words = "--ranks {ranks} --drift {drift} --transport {transport} --at {at} --interval {interval} "
                              "--barriers {barriers}",
                     .programs = {{}}}};
          },
          .each = {"drift"}};
}

/// A number of the last round's details, or "-" where the program did not print it.
std::string detail(const BenchRow& row, const char* key) {
  const Json* const found = row.details.find(key);
  return found != nullptr && found->is_number() ? fmt::format("{:.4g}", found->number()) : "-";
}

void print_ring(const BenchOutcome& outcome) {
  fmt::print("us, and errors (measured minus true)\n{:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>10}\n", "clocks by",
             "median", "1 %", "99 %", "|.| 99 %", "drift", "violations");
  for (const BenchRow& row : outcome.rows) {
    fmt::print("{:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>10}\n", row.name, detail(row, "duration"),
               detail(row, "error_p01"), detail(row, "error_p99"), detail(row, "error_p99_abs"), detail(row, "drift"),
               detail(row, "violations"));
  }
}

/// Durations of messages by wrong clocks, corrected in several ways (figure 17 of the article on traces).
BenchPlan ring() {
  return {.name = "ring",
          .help = "Message durations by drifting clocks, corrected in several ways",
          .options = {{"--ranks", 4U, "Number of ranks", Range{2, 64}},
                      {"--seconds", 60U, "Seconds for which messages circulate", Range{1, 86'400}},
                      {"--period", 10U, "Milliseconds between two messages"},
                      {"--transport", "shm", "shm or tcp", Words{"shm", "tcp"}}},
          .suites = [](BenchValues&) -> Suites {
            return {{.suite = {.title = "durations of messages of 4 bytes round a ring of {ranks} ranks over "
                                        "{transport}, {seconds} s, drifts injected",
                               .params = {{"ranks", "{ranks}"}, {"seconds", "{seconds}"}, {"period_ms", "{period}"},
                                          {"transport", "{transport}"}},
                               .warms_up = false,
                               .print_table = print_ring},
                     .words = "--ranks {ranks} --seconds {seconds} --period {period} --transport {transport}",
                     .programs = {{}}}};
          },
          .picture = "durations and errors over the run, by method",
          .rounds = 1,
          .seconds = "seconds"};
}

/// Costs of simulating, then the virtual times that the same traffic takes.
BenchPlan simulation() {
  return {.name = "simulation",
          .help = "Processor time of a simulated message, task and broadcast, and the times that network models give",
          .options = {{"--simulated", 1000U, "Ranks that send messages"},
                      {"--messages", 20U, "Messages of each rank and size"},
                      {"--recipients", 10'000U, "Ranks of the broadcast"}},
          .suites = [](BenchValues&) -> Suites {
            const std::string words = "--ranks {simulated} --messages {messages}";
            return {{.suite = {.title = "processor time of simulations, messages between {simulated} ranks",
                               .params = {{"ranks", "{simulated}"}, {"messages", "{messages}"}},
                               .warms_up = false},
                     .words = words,
                     .programs = {{"tandem", {}, words + " --recipients {recipients}"}, {"simgrid"}}},
                    {.suite = {.title = "virtual time of that traffic, by both network models",
                               .params = {{"ranks", "{simulated}"}, {"messages", "{messages}"}},
                               .warms_up = false},
                     .words = words + " --times",
                     .programs = {{}, {"simgrid"}}}};
          },
          .rounds = 1};
}

}  // namespace

void add_bench(Subcommand app, ToolContext& context) {
  Subcommand bench = app.add_subcommand("bench", "Measure Tandem and comparable programs in turns");
  bench.require_subcommand();
  for (const auto plan : {tasks, wake, events}) add_benchmark(bench, plan(), context);
  add_bench_flushes(bench, context);
  for (const auto plan : {cholesky, device, cuda, hybrid, pingpong, flow_pingpong, arrival, polling, burst, urgent,
                          priority, overlap, ranks, readers, broadcasts, bcast, clock, ring,
                          simulation})
    add_benchmark(bench, plan(), context);
}

}  // namespace tandem::tools
