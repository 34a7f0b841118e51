// tools/machine/doctor_command.cpp: `tandem doctor`: runs the checks and prints a line for each.
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/pmix_job.hpp"
#include "tandem/comm/transport/load_module.hpp"
#include "tandem/trace/recover.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tools/machine/blas_remedy.hpp"
#include "tools/machine/doctor.hpp"
#include "tools/json/json_report.hpp"
#include "tools/launcher/plan.hpp"
#include "tools/subcommands.hpp"
#include "tools/subprocess.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

struct DoctorArguments {
  bool json = false, clean = false, try_blas = false;
  unsigned ranks = 1;
  std::string hosts, hostfile;
  std::string ssh = "ssh -o BatchMode=yes -o ConnectTimeout=5";
};

std::string_view name_of(Verdict verdict) {
  return verdict == Verdict::right ? "right" : verdict == Verdict::advice ? "advice" : "wrong";
}

bool is_alive(std::uint32_t process) { return kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM; }

/// Completes the traces, and removes files without a trace.
Finding clean(const std::vector<Leftover>& leftovers) {
  std::size_t removed = 0;
  std::string problems;
  for (const Leftover& leftover : leftovers) {
    if (!leftover.is_own) continue;
    if (const auto live = trace::open_live(leftover.file, base::Owners::self);
        live && live.value().folder().is_absolute())
      (void)trace::recover_rank(live.value().folder())
          .ok();  // a folder that is gone, or another user's, cannot be completed
    // The file is opened anew: one that is no live file is removed, too.
    const auto file = base::OwnedFile::open(leftover.file, base::Owners::self);
    const bool is_gone = !file && file.error().code == base::ErrorCode::not_found;
    const auto done = file ? trace::remove_live_file(file.value()) : is_gone ? base::Result<void>() : file.error();
    if (done) ++removed;
    else problems += (problems.empty() ? "" : ", ") + done.error().message;
  }
  const std::string found = fmt::format("{} removed", removed == 1 ? "one file" : fmt::format("{} files", removed));
  if (problems.empty()) return {"leftovers", Verdict::right, found};
  return {"leftovers", Verdict::wrong, fmt::format("{}; not removed: {}", found, problems),
          "remove them as their owner"};
}

Finding check_module(const char* name, const char* package, bool shares_symbols, const std::string& folder) {
  const auto module =
      comm::internal::load_module({.transport = name, .package = package, .shares_symbols = shares_symbols}, folder);
  if (module.ok()) return {fmt::format("transport {}", name), Verdict::right, "its module is there"};
  return {fmt::format("transport {}", name), Verdict::advice, module.error().message,
          fmt::format("only needed for --tandem.comm.transports=...,{}", name)};
}

Finding check_pmix() {
  if (comm::internal::speaks_pmix())
    return {"PMIx", Verdict::right, "this build joins jobs of mpirun, prterun and srun --mpi=pmix"};
  return {"PMIx", Verdict::advice, "this build cannot join jobs of mpirun and srun",
          "install libpmix-dev and build again; `tandem run` needs none"};
}

Finding check_host(const std::string& host, const std::string& ssh) {
  const std::string subject = fmt::format("host {}", host);
  if (is_this_host(host)) return {subject, Verdict::right, "this host"};
  std::error_code unknown;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const auto begun = std::chrono::steady_clock::now();
  Command command{.file = "/bin/sh", .arguments = {"-c", fmt::format("exec {} \"$@\"", ssh)}, .environment = {}};
  command.arguments.insert(command.arguments.end(), {"sh", host, fmt::format("exec '{}' --version", self)});
  const auto ran = run_program(command, std::chrono::seconds(15));
  const std::string remedy =
      fmt::format("make `ssh {} {} --version` work without a password; --remote-tandem names another path", host, self);
  if (!ran.ok()) return {subject, Verdict::wrong, ran.error().message, remedy};
  const std::string own = fmt::format("tandem {} ", version);
  const std::string& said = ran.value().output;
  if (said.find(own) == std::string::npos)
    return {subject, Verdict::wrong,
            fmt::format("it has {}, and this host has {}", said.substr(0, said.find('\n')), own),
            "install one version everywhere"};
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  return {subject, Verdict::right, fmt::format("answers in {} ms with the same version", took.count())};
}

std::vector<Finding> check_hosts(const DoctorArguments& arguments) {
  std::vector<Finding> findings;
  if (arguments.hosts.empty() && arguments.hostfile.empty()) return findings;
  const auto hosts = arguments.hostfile.empty() ? parse_hosts(arguments.hosts) : read_hostfile(arguments.hostfile);
  if (!hosts) return {{"hosts", Verdict::wrong, hosts.error().message, "correct the list"}};
  for (const HostShare& share : hosts.value()) findings.push_back(check_host(share.host, arguments.ssh));
  return findings;
}

std::vector<Finding> examine(const DoctorArguments& arguments, const ToolContext& context) {
  std::vector<Finding> findings{check_calls(probe_calls())};
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) findings.push_back(check_descriptors(files));
  struct statvfs space {};
  const bool mounted = statvfs("/dev/shm", &space) == 0;
  findings.push_back(check_shared_memory(mounted ? space.f_blocks * space.f_frsize : 0,
                                         mounted ? space.f_bavail * space.f_frsize : 0));
  const auto machine = base::Topology::discover();
  if (machine) findings.push_back(check_binding(machine.value(), context.config, std::max(1u, arguments.ranks)));
  else findings.push_back({"binding", Verdict::wrong, machine.error().message, "see whether `lstopo` works"});
  findings.push_back(check_numa_balancing("/", machine ? machine.value().numa_nodes().size() : 1));
  findings.push_back(check_governor("/"));
  for (Finding& finding : check_energy(context.config)) findings.push_back(std::move(finding));
  for (Finding& finding : check_networks("/")) findings.push_back(std::move(finding));
  findings.push_back(check_blas(examine_blas()));
  const std::string& folder = context.config.get_string("comm.modules");
  findings.push_back(check_module("ucx", "libucx-dev", false, folder));
  findings.push_back(check_module("mpi", "libopenmpi-dev", true, folder));
  findings.push_back(check_pmix());
  for (Finding& finding : check_hosts(arguments)) findings.push_back(std::move(finding));
  const auto leftovers = find_leftovers(context.config.get_string("trace.live"), is_alive);
  findings.push_back(arguments.clean && !leftovers.empty() ? clean(leftovers) : check_leftovers(leftovers));
  return findings;
}

void print_lines(const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  for (const Finding& finding : findings) {
    fmt::print("{:6}  {:{}}  {}\n", name_of(finding.verdict), finding.subject, width, finding.found);
    if (!finding.remedy.empty()) fmt::print("{:{}}  -> {}\n", "", 8 + width, finding.remedy);
  }
}

void print_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"subject", finding.subject},
                    {"verdict", std::string(name_of(finding.verdict))},
                    {"found", finding.found},
                    {"remedy", finding.remedy.empty() ? Json(nullptr) : Json(finding.remedy)}});
  print({{"tandem", version}, {"commit", commit}, {"findings", list}});
}

}  // namespace

void add_doctor(Subcommand app, ToolContext& context) {
  Subcommand command = app.add_subcommand("doctor", "Find what would go wrong on this host, and say what to do");
  command.footer(
      "Each line says what was found and whether it is right; an arrow begins the remedy. `advice` is about speed\n"
      "or about what few programs need. The exit status is 1 when a line says `wrong`.");
  auto arguments = std::make_shared<DoctorArguments>();
  command.add_option("-n,--np", arguments->ranks, "Number of ranks on this host, for the binding plan").show_default();
  Option hosts = command.add_option("--host", arguments->hosts, "Hosts to reach, as for tandem run");
  hosts.type_name("A,B,...");
  command.add_option("--hostfile", arguments->hostfile, "File of hosts to reach, as for tandem run")
      .type_name("FILE")
      .excludes(hosts);
  command.add_option("--ssh", arguments->ssh, "Program that starts commands on other hosts, with its options")
      .show_default()
      .environment("TANDEM_RUN_SSH")
      .type_name("PROGRAM");
  command.add_flag("--clean", arguments->clean,
                   "Complete the traces of killed runs, and remove their files from shared memory");
  command.add_flag("--json", arguments->json, "Print a JSON object");
  command.add_flag("--try-blas", arguments->try_blas, "Print the rate of the BLAS, and whether it computes rightly")
      .hide_from_help();
  command.callback([arguments, &context] {
    if (arguments->try_blas) {
      base::restrict_blas_threads();
      fmt::print("{}", trial_text(linalg::try_blas()));
      return;
    }
    const std::vector<Finding> findings = examine(*arguments, context);
    arguments->json ? print_json(findings) : print_lines(findings);
    for (const Finding& finding : findings)
      if (finding.verdict == Verdict::wrong) context.exit_status = 1;
  });
}

}  // namespace tandem::tools
