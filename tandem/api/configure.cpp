// tandem/api/configure.cpp: the options of a runtime.
#include "tandem/api/configure.hpp"

#include "tandem/api/energy_counters.hpp"
#include "tandem/base/energy_counter.hpp"
#include "tandem/base/nvml.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/runtime/sched/queues/ready_queues.hpp"

namespace tandem {

static void register_debugging(base::Registry& registry) {
  using base::OptionType;
  registry.add({.name = "sched.recorded", .type = OptionType::text, .default_value = "",
                .help = "file of `tandem trace export --format schedule`: instead of a policy, tasks run on the "
                        "workers, and in the order, of that run"});
  registry.add({.name = "debug.stop_before", .type = OptionType::text, .default_value = "",
                .help = "RANK:TASK: in a simulation, the process of that rank stops (SIGSTOP) before the kernel of the "
                        "task of this number begins"});
  registry.add({.name = "explain", .type = OptionType::text, .default_value = "",
                .help = "log on standard error why these tasks got their worker: names or numbers of tasks, as in "
                        "potrf,1234; of each name the first 8; empty: none"});
}

static void register_broadcasts(base::Registry& registry) {
  using base::OptionType;
  std::vector<std::string> broadcasts{"off"};
  for (const std::string_view name : comm::tree_names()) broadcasts.emplace_back(name);
  registry.add(
      {.name = "broadcast",
       .type = OptionType::choice,
       .default_value = "ordered",
       .help = "shape of the tree that brings data to several ranks; automatic: the fastest; ordered: the fastest that "
               "serves ranks in the order of their tasks' priorities, which two_tree does not; off: a plain message to "
               "each",
       .choices = broadcasts});
  const std::vector<std::string> plain_trees{"flat", "chain", "binary", "kary", "binomial", "knomial"};
  registry.add({.name = "broadcast.arity", .type = OptionType::integer, .default_value = "4",
                .help = "of broadcast=kary: ranks that each serves; of knomial: its radix", .minimum = 2,
                .maximum = 1 << 16});
  registry.add({.name = "broadcast.above", .type = OptionType::choice, .default_value = "binomial",
                .help = "of broadcast=two_groups: tree of the urgent ranks", .choices = plain_trees});
  registry.add({.name = "broadcast.below", .type = OptionType::choice, .default_value = "binomial",
                .help = "of broadcast=two_groups: tree of the other ranks; of delegate: tree below the rank that takes "
                        "over",
                .choices = plain_trees});
  registry.add({.name = "broadcast.first_group", .type = OptionType::integer, .default_value = "0",
                .help = "of broadcast=two_groups: number of urgent ranks; 0: those before the largest gap of "
                        "priorities",
                .minimum = 0, .maximum = 1 << 24});
  registry.add({.name = "broadcast.segment", .type = OptionType::bytes, .default_value = "0",
                .help = "pieces in which broadcast data is forwarded; 0: chosen; 1GiB: each rank forwards what it has "
                        "whole",
                .minimum = 0, .maximum = 1 << 30});
  registry.add({.name = "broadcast.order", .type = OptionType::choice, .default_value = "priority",
                .help = "which of the ranks is served first: the one with the most urgent task, or the one whose task "
                        "was submitted first",
                .choices = {"priority", "submission"}});
  registry.add({.name = "broadcast_hold", .type = OptionType::duration, .default_value = "0",
                .help = "how long a broadcast waits for late recipients", .minimum = 0});
}

void register_options(base::Registry& registry) {
  using base::OptionType;
  registry.add({.name = "workers", .type = OptionType::integer, .default_value = "0",
                .help = "CPU workers, the calling thread included; 0: one for each core that this process may use", .minimum = 0,
                .maximum = runtime::ReadyQueues::kMaxWorkers});
  registry.add({.name = "stack", .type = OptionType::bytes, .default_value = "0",
                .help = "stack of each worker's thread, 64 KiB at least; 0: the program's limit (ulimit -s), 64 MiB where that is unlimited. The calling thread "
                        "keeps its own",
                .minimum = 0, .maximum = std::int64_t{1} << 40});
  registry.add({.name = "sched", .type = OptionType::text, .default_value = "auto",
                .help = "scheduling policy: lws, prio, eager, random; where workers differ plan, heteroprio, darts, dm, dmda, dmdar, dmdas; or one that the "
                        "program registered; auto: plan where workers differ, otherwise lws"});
  register_debugging(registry);
  registry.add({.name = "copy_weight", .type = OptionType::real, .default_value = "1",
                .help = "factor on the expected time of copies in schedulers that look ahead: above 1 avoids "
                        "copies, 0 ignores them",
                .minimum = 0});
  registry.add({.name = "objective", .type = OptionType::choice, .default_value = "time",
                .help = "what the schedulers plan, heteroprio, darts, dm, dmda, dmdar and dmdas minimise: time; "
                        "energy, that of the whole machine; or edp, their product. Powers come from the file of "
                        "option machine, or from counters, in this run and, with option models, in earlier ones",
                .choices = {"time", "energy", "edp"}});
  registry.add({.name = "energy", .type = OptionType::boolean, .default_value = "true",
                .help = "options stats, models, trace, report and objective read energy counters that may be read; "
                        "tandem doctor lists them"});
  registry.add({.name = "energy.every", .type = OptionType::duration, .default_value = "50ms",
                .help = "time between two readings of the energy counters", .minimum = 1'000'000});
  registry.add({.name = "energy.powercap", .type = OptionType::text, .default_value = base::kPowercapFolder,
                .help = "folder in which the kernel shows the counters of packages (RAPL)"});
  registry.add({.name = "energy.nvml", .type = OptionType::text, .default_value = base::Nvml::kLibrary,
                .help = "library with the energy counters of NVIDIA's devices (NVML): a name, or a path"});
  registry.add(
      {.name = "caller",
       .type = OptionType::boolean,
       .default_value = "true",
       .help = "the calling thread is worker 0 and runs tasks while it waits; false: each worker has its own thread"});
  registry.add({.name = "caller.numa",
                .type = OptionType::integer,
                .default_value = "-1",
                .help =
                    "NUMA node, from 0, of the calling thread: its cores are worker 0's and the first workers', and "
                    "memory that the program touches first is there (-1: any)",
                .minimum = -1,
                .maximum = 1023});
  registry.add({.name = "bind", .type = OptionType::boolean, .default_value = "true",
                .help = "bind each worker's thread to a core, and a rank to its share of the host's cores"});
  registry.add({.name = "cores", .type = OptionType::text, .default_value = "",
                .help = "hardware threads to use, as in 0-7,16-23; with semicolons, one list for each rank of a host; empty: all"});
  registry.add({.name = "device_cores", .type = OptionType::text, .default_value = "",
                .help = "hardware threads for the workers of devices, in the order of the devices, as in 3,7; "
                        "near: for each a core near its device; empty: any"});
  registry.add({.name = "window", .type = OptionType::integer, .default_value = "32768",
                .help = "most tasks that are submitted and not ended; at this number, submit runs tasks or waits", .minimum = 1});
  registry.add({.name = "memory", .type = OptionType::bytes, .default_value = "0",
                .help = "main memory of a rank for data that Tandem allocates; beyond the limit, data whose next "
                        "use is furthest moves to a file in folder spill (0: no limit)",
                .minimum = 0});
  registry.add({.name = "spill", .type = OptionType::text, .default_value = "",
                .help = "folder of the file for data beyond option memory; empty: $TMPDIR, or /var/tmp"});
  registry.add({.name = "numa", .type = OptionType::boolean, .default_value = "false",
                .help = "make each NUMA node a separate memory, to which data is copied for use there; false: all "
                        "nodes are main memory"});
  registry.add({.name = "opencl", .type = OptionType::integer, .default_value = "0",
                .help = "number of OpenCL devices, each with its own worker; those that are no processors come "
                        "first (0: none)", .minimum = 0,
                .maximum = 14});
  registry.add({.name = "opencl.depth", .type = OptionType::integer, .default_value = "3",
                .help = "most tasks in flight on an OpenCL device", .minimum = 1, .maximum = 64});
  registry.add({.name = "opencl.memory",
                .type = OptionType::bytes,
                .default_value = "0",
                .help = "memory of each OpenCL device for data of this rank; 0: three quarters of it, divided by the "
                        "ranks of the host",
                .minimum = 0});
  registry.add({.name = "cuda", .type = OptionType::integer, .default_value = "0",
                .help = "number of CUDA devices, each with its own worker (0: none)", .minimum = 0, .maximum = 14});
  registry.add({.name = "cuda.depth", .type = OptionType::integer, .default_value = "4",
                .help = "most tasks in flight on a CUDA device, each on its own stream", .minimum = 1, .maximum = 64});
  registry.add({.name = "cuda.graphs", .type = OptionType::boolean, .default_value = "false",
                .help = "launch small kernels from source that come again in the same order (see device_stretch) "
                        "as CUDA graphs"});
  registry.add({.name = "cuda.messages", .type = OptionType::boolean, .default_value = "false",
                .help = "links that can (UCX with CUDA) read and write messages in the memory of CUDA devices (see "
                        "device_messages)"});
  registry.add({.name = "cuda.memory",
                .type = OptionType::bytes,
                .default_value = "0",
                .help = "memory of each CUDA device for data of this rank; 0: three quarters of what is free at the "
                        "start, divided by the ranks of the host",
                .minimum = 0});
  registry.add({.name = "cuda.page_locked", .type = OptionType::bytes, .default_value = "4GiB",
                .help = "page-locked main memory of a rank with CUDA devices, for data of Tandem, "
                        "messages that arrive, and copies; beyond it, plain memory (0: plain memory only)",
                .minimum = 0});
  registry.add({.name = "cuda.libraries", .type = OptionType::text, .default_value = "",
                .help = "folder of NVRTC, cuBLAS and cuSOLVER, and maybe libcuda.so.1; empty: those of the dynamic "
                        "loader"});
  registry.add({.name = "device_stretch", .type = OptionType::integer, .default_value = "16",
                .help = "most tasks in a lane of a device (OpenCL's queue, a CUDA stream), each of which waits "
                        "only for the one before it; 1: a task is posted when the one before it has ended",
                .minimum = 1, .maximum = 64});
  registry.add({.name = "machine", .type = OptionType::text, .default_value = "",
                .help = "file with links between memories, and names and budgets of memories, used instead of "
                        "measurements; tandem machine --links --save writes it; empty: none"});
  registry.add({.name = "machine.save", .type = OptionType::text, .default_value = "",
                .help = "file for the machine and the links between its memories, which rank 0 measures before the "
                        "first task, alone and all at once, for option machine; 10 s at most; empty: none"});
  registry.add({.name = "poll_max", .type = OptionType::duration, .default_value = "1us",
                .help = "longest pause between two polls of an idle worker (exponential back-off)", .minimum = 0});
  registry.add({.name = "poll_for", .type = OptionType::duration, .default_value = "20us",
                .help = "how long an idle worker polls before it sleeps", .minimum = 0});
  registry.add({.name = "polling", .type = OptionType::choice, .default_value = "auto",
                .help = "auto: while tasks wait only for messages below 64 KiB, idle workers wait awake for "
                        "poll_for instead of looking for tasks; fixed: they always look for tasks, by poll_max and "
                        "poll_for",
                .choices = {"auto", "fixed"}});
  registry.add({.name = "watchdog", .type = OptionType::duration, .default_value = "30s",
                .help = "if no task ends for this long, report which waits are open; 0: never", .minimum = 0});
  registry.add({.name = "watchdog_throws", .type = OptionType::boolean, .default_value = "false",
                .help = "wait throws StuckError when the watchdog reports; false: it waits on"});
  registry.add({.name = "stats", .type = OptionType::boolean, .default_value = "false",
                .help = "measure each task, and print a table at the end"});
  registry.add({.name = "timeline", .type = OptionType::boolean, .default_value = "false",
                .help = "keep the times of each task, for Runtime::timeline()"});
  registry.add({.name = "models", .type = OptionType::boolean, .default_value = "false",
                .help = "learn the durations of tasks from the files of earlier runs, and save them for later "
                        "ones; tandem models shows them"});
  registry.add({.name = "model.folder", .type = OptionType::text, .default_value = "",
                .help = "folder of the performance models of this machine; empty: tandem/models/HOST in $XDG_CACHE_HOME or ~/.cache"});
  registry.add({.name = "contention", .type = OptionType::text, .default_value = "auto",
                .help = "limit the memory-bound tasks that run at once to those that fill the memory bus, and to "
                        "fewer beside urgent messages, and let schedulers account for shared memory, by a model of "
                        "this machine; auto: the one of `tandem contention fit --install`; off; a file of that kind; "
                        "or a machine of the thesis such as henri"});
  registry.add({.name = "graphviz", .type = OptionType::text, .default_value = "",
                .help = "file for the task graph, in the DOT language; empty: none"});
  registry.add({.name = "trace", .type = OptionType::text, .default_value = "",
                .help = "events to record: all, or categories and events such as task,comm,-task.deps; empty: no trace"});
  registry.add({.name = "report", .type = OptionType::text, .default_value = "",
                .help = "file for a page (HTML) that shows the run, made at its end from a trace of all events, or of those of option "
                        "trace; empty: none"});
  registry.add({.name = "trace.folder", .type = OptionType::text, .default_value = "",
                .help = "folder of the trace, with one folder per rank in it; empty: trace-PROGRAM-JOB"});
  registry.add({.name = "trace.memory", .type = OptionType::bytes, .default_value = "16MiB",
                .help = "memory of each rank for events that are not written yet", .minimum = 65536});
  registry.add({.name = "trace.buffer", .type = OptionType::bytes, .default_value = "64KiB",
                .help = "size of one event buffer, a part of trace.memory; a multiple of 64", .minimum = 8192,
                .maximum = 1 << 30});
  registry.add({.name = "trace.counters", .type = OptionType::boolean, .default_value = "false",
                .help = "record the processor's counters for each task: cycles, instructions, stalled cycles, "
                        "cache misses; costs some us a task"});
  registry.add({.name = "trace.when_full", .type = OptionType::choice, .default_value = "lose",
                .help = "when trace.memory is full: lose and count new events; wait for the disk; or keep the newest events",
                .choices = {"lose", "wait", "newest"}});
  registry.add({.name = "trace.write_early", .type = OptionType::boolean, .default_value = "true",
                .help = "write events while the program runs; false: only at its end, so trace.memory must hold all"});
  registry.add({.name = "trace.live", .type = OptionType::text, .default_value = "/dev/shm",
                .help = "folder in memory for events that are not written yet; they survive a crash of the program"});
  registry.add({.name = "trace.sync_every", .type = OptionType::duration, .default_value = "1s",
                .help = "how often ranks record clock differences between start and end; 0: only at start and end",
                .minimum = 0});
  registry.add({.name = "python", .type = OptionType::text, .default_value = "",
                .help = "Python for tables and pictures of traces; empty: Tandem's .venv/bin/python, else python3"});
  registry.add(
      {.name = "seed", .type = OptionType::integer, .default_value = "1", .help = "seed of all random choices"});
  registry.add({.name = "log",
                .type = OptionType::choice,
                .default_value = "warn",
                .help = "least severe messages to print",
                .choices = {"error", "warn", "info", "debug"}});
  registry.add({.name = "ranks", .type = OptionType::choice, .default_value = "job",
                .help = "job: a rank of the job that started this process; alone: the only rank of its own job",
                .choices = {"job", "alone"}});
  register_broadcasts(registry);
  registry.add({.name = "early_read", .type = OptionType::boolean, .default_value = "true",
                .help = "tasks that only read start when their data has arrived; false: after it was also forwarded"});
  registry.add({.name = "announce", .type = OptionType::boolean, .default_value = "true",
                .help = "announce a message while its writer runs, so that less urgent ones make room"});
  registry.add({.name = "incoming", .type = OptionType::boolean, .default_value = "true",
                .help = "a worker may wait for an urgent task whose data is arriving, instead of starting a long one"});
  registry.add({.name = "device_messages", .type = OptionType::boolean, .default_value = "true",
                .help = "send large data that is only in a device's memory from there, and receive it where its "
                        "first reader runs, if the memory and the network allow it"});
  registry.add({.name = "copies", .type = OptionType::bytes, .default_value = "0",
                .help = "memory for data received from other ranks; all ranks use the smallest value (0: no limit)",
                .minimum = 0});
  registry.add({.name = "message_node",
                .default_value = "auto",
                .help = "number of the NUMA node on which memory for data received from other ranks lies; off: where "
                        "the system puts it; auto: with "
                        "comm.progress_core=model as that chooses, else off"});
  registry.add({.name = "reserve_core", .type = OptionType::boolean, .default_value = "false",
                .help = "keep the core comm.progress_core free: no worker is bound to it or counted for it"});
  registry.add({.name = "idle_progress", .type = OptionType::boolean, .default_value = "true",
                .help = "idle workers poll the network; false: only the progress thread does"});
  registry.add({.name = "prune", .type = OptionType::boolean, .default_value = "true",
                .help = "pruned loops skip tasks that do not concern their rank; false: they submit all"});
  registry.add({.name = "compare_after", .type = OptionType::duration, .default_value = "1s",
                .help = "if no task ends for this long in a wait, ranks that wait for each other compare what they have "
                        "submitted; 0: only at the end of a flow", .minimum = 0});
  registry.add({.name = "check_pruning", .type = OptionType::boolean, .default_value = "false",
                .help = "pruned loops submit all tasks, and throw UsageError where they would wrongly skip one"});
  comm::add_comm_options(registry);
}

namespace {

/// The tree of an option that has one of their names; "off" has none.
comm::TreeKind tree_of(const base::Config& config, const char* option) {
  return comm::tree_kind(config.get_string(option)).value_or(comm::TreeKind::ordered);
}

comm::TreeOptions tree_options(const base::Config& config) {
  comm::TreeOptions tree(tree_of(config, "broadcast"), static_cast<std::size_t>(config.get_bytes("broadcast.segment")));
  tree.arity = static_cast<unsigned>(config.get_int("broadcast.arity"));
  tree.above = tree_of(config, "broadcast.above");
  tree.below = tree_of(config, "broadcast.below");
  tree.first_group = static_cast<std::uint32_t>(config.get_int("broadcast.first_group"));
  tree.by_priority = config.get_string("broadcast.order") == "priority";
  return tree;
}

}  // namespace

dist::FlowOptions flow_options(const base::Config& config) {
  dist::FlowOptions options;
  options.transfers.broadcasts = config.get_string("broadcast") != "off";
  options.transfers.tree = tree_options(config);
  options.transfers.hold_ns = config.get_duration_ns("broadcast_hold");
  options.transfers.announce = config.get_bool("announce");
  options.transfers.incoming = config.get_bool("incoming");
  options.transfers.early_read = config.get_bool("early_read");
  if (!config.get_bool("device_messages")) options.transfers.device_message_bytes = SIZE_MAX;
  options.idle_progress = config.get_bool("idle_progress");
  options.prune = config.get_bool("prune");
  options.compare_after_ns = config.get_duration_ns("compare_after");
  options.check_pruning = config.get_bool("check_pruning");
  options.trace_sync_every_ns = config.get_duration_ns("trace.sync_every");
  options.copy_bytes = static_cast<std::size_t>(config.get_bytes("copies"));
  if (options.copy_bytes == 0) options.copy_bytes = SIZE_MAX;
  return options;
}

runtime::CoreOptions core_options(const base::Config& config) {
  runtime::CoreOptions options;
  options.window = static_cast<std::uint64_t>(config.get_int("window"));
  options.watchdog_ns = config.get_duration_ns("watchdog");
  options.watchdog_throws = config.get_bool("watchdog_throws");
  options.statistics = config.get_bool("stats");
  options.timeline = config.get_bool("timeline");
  options.graphviz = config.get_string("graphviz");
  options.explain = config.get_string("explain");
  options.copy_weight = config.get_double("copy_weight");
  options.objective = objective_of(config);
  options.energy_every_ns = config.get_duration_ns("energy.every");
  options.poll_max_ns = config.get_duration_ns("poll_max");
  options.poll_for_ns = config.get_duration_ns("poll_for");
  options.device_stretch = static_cast<unsigned>(config.get_int("device_stretch"));
  options.adaptive_polling = config.get_string("polling") == "auto";
  options.seed = static_cast<std::uint64_t>(config.get_int("seed"));
  return options;
}

}  // namespace tandem
