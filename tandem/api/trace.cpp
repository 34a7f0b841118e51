// tandem/api/trace.cpp: opens traces by the configuration.
#include "tandem/api/trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tandem/api/commit.hpp"
#include "tandem/api/report.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/trace/layout.hpp"

namespace tandem {

namespace {

/// The command line of this process.
std::vector<std::string> command_line() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// Folder of a program that named none. A program may have several runtimes, one after the other: their count is the
/// same on each rank, so that all ranks find the same name.
std::filesystem::path fresh_folder(const std::string& program, const TracePlace& place) {
  const std::string name = fmt::format("trace-{}-{}", program, place.size > 1 ? place.job : std::to_string(::getpid()));
  std::filesystem::path folder = name;
  for (unsigned count = 2; std::filesystem::exists(folder / trace::rank_folder_name(place.rank)); ++count)
    folder = fmt::format("{}.{}", name, count);
  return folder;
}

void declare_in(trace::Session& session, const trace::EventSpec& spec) {
  std::vector<trace::DeclaredTypes::FieldName> fields;
  for (std::size_t i = 0; i < field_count(spec); ++i) fields.emplace_back(spec.fields[i].name, spec.fields[i].field);
  [[maybe_unused]] const auto type = session.declare(spec.name, fields);
  TANDEM_ASSERT(type && type.value() == spec.type);
}

trace::Selection selected(std::string_view text) {
  auto selection = trace::Selection::parse(text);
  if (!selection) throw UsageError(selection.error().message);
  return selection.value();
}

}  // namespace

trace::SessionOptions trace_options(const base::Config& config, const TracePlace& place,
                                    const base::Topology* topology) {
  trace::SessionOptions options;
  const std::string& report = config.get_string("report");
  options.selection =
      selected(config.get_string("trace").empty() && !report.empty() ? "all" : config.get_string("trace"));
  options.memory_bytes = static_cast<std::size_t>(config.get_bytes("trace.memory"));
  options.buffer_bytes = static_cast<std::size_t>(config.get_bytes("trace.buffer"));
  const std::string& when_full = config.get_string("trace.when_full");
  options.when_full = when_full == "wait"     ? trace::WhenFull::wait
                      : when_full == "newest" ? trace::WhenFull::newest
                                              : trace::WhenFull::lose;
  options.write_early = config.get_bool("trace.write_early");
  options.live_folder = config.get_string("trace.live");
  options.rank = place.rank;
  options.size = place.size;
  options.job = place.job;
  options.commit = build_commit();
  options.arguments = command_line();
  if (!options.arguments.empty()) {
    options.program = options.arguments.front();
    options.arguments.erase(options.arguments.begin());
  }
  const std::string program = std::filesystem::path(options.program).filename().string();
  options.folder = config.get_string("trace.folder");
  if (options.folder.empty())
    options.folder = report.empty() || place.size > 1 ? fresh_folder(program, place) : report_trace_folder(report);
  if (topology != nullptr) {
    options.cpu = topology->cpu_model();
    options.cores = static_cast<unsigned>(topology->cores().size());
    for (const base::Core& core : topology->cores())
      options.pus.insert(options.pus.end(), core.pus.begin(), core.pus.end());
    options.numa_nodes = static_cast<unsigned>(std::max<std::size_t>(1, topology->numa_nodes().size()));
    options.context = const_cast<base::Topology*>(topology);
    if (options.numa_nodes > 1)
      options.bind = [](void* memory, std::size_t bytes, unsigned node, void* context) {
        // Memory elsewhere is slower, but that is no reason to have no trace.
        (void)static_cast<const base::Topology*>(context)->bind_memory(memory, bytes, node);
      };
  }
  return options;
}

void Trace::start(std::string_view selection, const std::filesystem::path& folder) {
  const trace::Selection wanted = selected(selection);
  if (session_ != nullptr) return session_->select(wanted);
  session_ = open_(folder);
  session_->select(wanted);
  if (connect_) go_live();
}

/// Connects a new session; names that were taken before keep their numbers in it.
void Trace::go_live() {
  {
    const std::lock_guard guard(names_mutex_);
    naming_ = session_.get();
    for (std::uint32_t number = 0; number < early_names_.size(); ++number) {
      [[maybe_unused]] const std::uint32_t given = naming_->name(trace::NameKind::any, early_names_[number]);
      TANDEM_ASSERT(given == number);
    }
    early_names_.clear();
    for (std::size_t i = 0; i < types_.size(); ++i) declare_in(*naming_, types_.spec_at(i));
  }
  connect_(*session_);
  live_.store(session_.get(), std::memory_order_release);
}

/// Declares a type. All declarations come through here, so that the session gives the same numbers.
trace::Type Trace::declare(std::string_view type_name, std::span<const trace::DeclaredTypes::FieldName> fields) {
  const std::lock_guard guard(names_mutex_);
  const std::size_t before = types_.size();
  const auto type = types_.add(type_name, fields);
  if (!type) throw UsageError(type.error().message);
  if (naming_ != nullptr && types_.size() > before) declare_in(*naming_, types_.spec_at(before));
  return type.value();
}

Trace::Name Trace::name(std::string_view text) {
  const std::lock_guard guard(names_mutex_);
  if (naming_ != nullptr) return Name(naming_->name(trace::NameKind::any, text));
  const auto known = std::ranges::find(early_names_, text);
  if (known != early_names_.end()) return Name(static_cast<std::uint32_t>(known - early_names_.begin()));
  early_names_.emplace_back(text);
  return Name(static_cast<std::uint32_t>(early_names_.size() - 1));
}

void Trace::close() {
  live_.store(nullptr, std::memory_order_release);
  if (session_ != nullptr) session_->close();
}

void Trace::stop() {
  if (session_ != nullptr) session_->select(trace::Selection::none());
}

void Trace::name_thread(std::string_view text) {
  trace::Session* const session = live_.load(std::memory_order_acquire);
  if (session != nullptr && stream_here(*session) == nullptr) session->stream_of_this_thread(text);
}

void Trace::attach(trace::Stream& stream, std::string name) {
  trace::Session* const session = live_.load(std::memory_order_acquire);
  if (session != nullptr) session->attach(stream, {.kind = trace::ActorKind::user, .name = std::move(name)});
}

void Trace::connect(std::function<void(trace::Session&)> connect) {
  connect_ = std::move(connect);
  if (session_ != nullptr) go_live();
}

}  // namespace tandem
