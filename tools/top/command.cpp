// tools/top/command.cpp: `tandem top`: shows a run while it runs.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tandem/base/units.hpp"
#include "tools/subcommands.hpp"
#include "tools/top/runs.hpp"
#include "tools/top/view.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools {
namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* top_footer =
    R"(The run records a trace: TANDEM_TRACE=all ./app, or tandem run -n 4 -x TANDEM_TRACE=all ./app.
It is named by the folder of its trace, by its job (TANDEM_JOB_ID) or by one of its processes. Without a name: lists the runs of
this host.

  tandem top                        what runs here
  tandem top trace-app-4711         until it ends; q ends the view, not the run
  tandem top trace-app-4711 --once  one table, for scripts
  tandem top run-ab12cd --json      one object per line

The run is neither stopped nor slowed: its events are read from its shared memory. The exit status is 1 when a rank was killed.)";

struct TopArguments {
  std::string target;
  std::string interval = "1s";
  bool once = false, json = false;
  unsigned count = 0;
};

volatile sig_atomic_t interrupted = 0;

/// The terminal while the view is shown: another screen, no cursor, keys without a line end. Restored at the end.
class Screen {
 public:
  Screen() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    std::fputs("\033[?1049h\033[?25l", stdout);
    reads_keys_ = ::isatty(STDIN_FILENO) != 0 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!reads_keys_) return;
    termios changed = before_;
    changed.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &changed);
  }
  ~Screen() {
    if (reads_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    std::fputs("\033[?25h\033[?1049l", stdout);
    std::fflush(stdout);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Shows as much of the text as fits.
  void show(const std::string& text) {
    const auto [rows, columns] = size();
    std::string page = "\033[H";
    std::size_t line = 0;
    for (std::size_t at = 0; at < text.size() && line + 1 < rows; ++line) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      page += text.substr(at, std::min(end - at, columns)) + "\033[K\n";
      at = end + 1;
    }
    page += "\033[J";
    std::fputs(page.c_str(), stdout);
    std::fflush(stdout);
  }
  struct Size {
    std::size_t rows = 24, columns = 80;
  };
  static Size size() {
    winsize window{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) return {};
    return {window.ws_row, window.ws_col};
  }
  bool reads_keys() const noexcept { return reads_keys_; }

 private:
  termios before_{};
  bool reads_keys_ = false;
};

/// Sleeps until `end`, or until the key `q` is pressed. False: the view ends.
bool sleep_until(std::chrono::steady_clock::time_point end, const Screen* screen) {
  using std::chrono::milliseconds;
  while (interrupted == 0) {
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= milliseconds(0)) return true;
    pollfd keys{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const bool reads = screen != nullptr && screen->reads_keys();
    const int ready = ::poll(&keys, reads ? 1 : 0, static_cast<int>(std::min<std::int64_t>(left.count(), INT32_MAX)));
    if (ready <= 0) continue;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q') return false;
  }
  return false;
}

class Top {
 public:
  Top(const TopArguments& arguments, std::int64_t interval_ns, ToolContext& context)
      : arguments_(arguments), interval_(interval_ns), context_(context) {}

  void run() {
    auto found = find_run(arguments_.target, context_.config.get_string("trace.live"));
    if (!found) return fail(context_, found.error());
    run_folders_ = std::move(found).value();
    const auto ranks = ranks_in(run_folders_);
    if (!ranks) return fail(context_, ranks.error());
    auto opened = TopRun::open(ranks.value());
    if (!opened) return fail(context_, opened.error());
    TopRun run = std::move(opened).value();
    const bool is_view = !arguments_.json && arguments_.count == 0 && ::isatty(STDOUT_FILENO) != 0;
    auto screen = is_view ? std::make_unique<Screen>() : nullptr;
    const bool has_ended = follow(run, screen.get());
    screen.reset();
    if (!has_ended) return;
    if (run.was_killed()) context_.exit_status = 1;
    fmt::print("{}", arguments_.json ? end_json(run).dump() + "\n" : end_text(run));
  }

 private:
  /// Follows the run. True: the run is over.
  bool follow(TopRun& run, Screen* screen) {
    refresh(run);  // reads the earlier records
    auto next = std::chrono::steady_clock::now();
    for (unsigned shown = 0; !run.is_over();) {
      // The first view comes soon.
      next += shown == 0 && screen != nullptr ? std::min(interval_, std::chrono::nanoseconds(500'000'000)) : interval_;
      next = std::max(next, std::chrono::steady_clock::now());
      if (!sleep_until(next, screen)) return false;
      refresh(run);
      if (run.is_over()) return true;
      show(run, screen);
      if (++shown == arguments_.count) return false;
    }
    return true;
  }

  /// Looks for new ranks, since ranks may start later than others, and reads new records.
  void refresh(TopRun& run) const {
    const auto ranks = ranks_in(run_folders_);
    run.refresh(ranks ? ranks.value() : std::vector<std::filesystem::path>());
  }

  void show(const TopRun& run, Screen* screen) const {
    if (screen != nullptr) return screen->show(top_text(run, Screen::size().rows));
    const std::string text = arguments_.json ? top_json(run).dump() + "\n" : top_text(run, most_rows) + "\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);  // a reader may follow the output live
  }

  static constexpr std::size_t most_rows = 64;
  const TopArguments& arguments_;
  const std::chrono::nanoseconds interval_;
  ToolContext& context_;
  std::vector<std::filesystem::path> run_folders_;
};

void list(const TopArguments& arguments, ToolContext& context) {
  const auto runs = live_runs(context.config.get_string("trace.live"));
  if (arguments.json) {
    Json all = Json::array();
    for (const LiveRun& run : runs)
      all.push_back({{"process", run.process}, {"job", run.job}, {"rank", run.rank}, {"size", run.size}, {"program", run.program},
                     {"started", run.started}, {"folder", run.folder.string()}});
    fmt::print("{}\n", Json{{"runs", all}}.dump());
  } else if (runs.empty()) {
    fmt::print("no run of this host records a trace: start one with TANDEM_TRACE=all\n");
  } else {
    fmt::print("{}", describe(runs));
  }
}

void top(const TopArguments& given, ToolContext& context) {
  TopArguments arguments = given;
  if (arguments.target.empty()) return list(arguments, context);
  const auto interval = base::parse_duration_ns(arguments.interval);
  if (!interval || interval.value() < 10 * base::ns_per_ms) {
    context.log.error("--interval {}: {}", arguments.interval,
                      interval ? "10ms is the shortest" : interval.error().message);
    context.exit_status = 2;
    return;
  }
  if (arguments.once) arguments.count = 1;
  ::setpriority(PRIO_PROCESS, 0, 10);  // the run comes first
  Top(arguments, interval.value(), context).run();
}

}  // namespace

void add_top(Subcommand app, ToolContext& context) {
  Subcommand command =
      app.add_subcommand("top", "Show what a run does while it runs: workers, tasks, kernels, messages, what waits");
  auto arguments = std::make_shared<TopArguments>();
  command.footer(top_footer);
  command.add_option("run", arguments->target,
                     "Folder of the run's trace, a job or a process; without it: lists what runs on this host")
      .type_name("FOLDER|JOB|PROCESS");
  command.add_option("--interval", arguments->interval, "Time between two looks")
      .show_default()
      .type_name("TIME (1s, 200ms)");
  Option count = command.add_option("--count", arguments->count, "Print so many tables, then end").positive();
  command.add_flag("--once", arguments->once, "Print one table, then end: the same as --count 1").excludes(count);
  command.add_flag("--json", arguments->json,
                   "Print a JSON object per line: one for each look, one at the end of the run");
  command.callback([arguments, &context] { top(*arguments, context); });
}

}  // namespace tandem::tools
