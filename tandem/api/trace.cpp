// tandem/api/trace.cpp: opens traces by the configuration.
#include "tandem/api/trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tandem/api/commit.hpp"
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

/// Of a program that named none. A program may have several runtimes, one after the other: the same number of them on each rank, so
/// that all ranks find the same name.
std::filesystem::path fresh_folder(const std::string& program, const TracePlace& place) {
  const std::string name = fmt::format("trace-{}-{}", program, place.size > 1 ? place.job : std::to_string(::getpid()));
  std::filesystem::path folder = name;
  for (unsigned count = 2; std::filesystem::exists(folder / trace::rank_folder_name(place.rank)); ++count)
    folder = fmt::format("{}.{}", name, count);
  return folder;
}

trace::Selection selected(std::string_view text) {
  auto selection = trace::Selection::parse(text);
  if (!selection) throw UsageError(selection.error().message);
  return selection.value();
}

}  // namespace

trace::SessionOptions trace_options(const base::Config& config, const TracePlace& place, const base::Topology* topology) {
  trace::SessionOptions options;
  options.selection = selected(config.get_string("trace"));
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
  if (options.folder.empty()) options.folder = fresh_folder(program, place);
  if (topology != nullptr) {
    options.cpu = topology->cpu_model();
    options.cores = static_cast<unsigned>(topology->cores().size());
  }
  return options;
}

void Trace::start(std::string_view selection) {
  const trace::Selection wanted = selected(selection);
  if (session_ != nullptr) return session_->select(wanted);
  session_ = open_();
  session_->select(wanted);
  if (connect_) connect_(*session_);
}

void Trace::stop() {
  if (session_ != nullptr) session_->select(trace::Selection::none());
}

Trace::Span Trace::span(std::string_view name) {
  if (!on()) return {nullptr, 0};
  return {submitter_, session_->name(trace::NameKind::span, name)};
}

Trace::Span Trace::span(trace::Stream& stream, std::string_view name) {
  if (!on()) return {nullptr, 0};
  return {&stream, session_->name(trace::NameKind::span, name)};
}

void Trace::attach(trace::Stream& stream, std::string name) {
  if (session_ != nullptr) session_->attach(stream, {.kind = trace::ActorKind::user, .name = std::move(name)});
}

void Trace::connect(std::function<void(trace::Session&)> connect) {
  connect_ = std::move(connect);
  if (session_ != nullptr) connect_(*session_);
}

}  // namespace tandem
