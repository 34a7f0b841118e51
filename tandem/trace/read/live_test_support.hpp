// tandem/trace/read/live_test_support.hpp: the folder and the live buffers of a rank that seems to run, for tests.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/host.hpp"
#include "tandem/trace/read/live_rank.hpp"
#include "tandem/trace/read/test_support.hpp"

namespace tandem::trace::test {

/// Records what a reader reported.
class Told final : public LiveListener {
 public:
  void event(const Event& event) override {
    lines.push_back(std::to_string(event.actor) + " " + std::string(event.spec().name) + " " + event.described());
  }
  void missed(std::uint32_t actor, std::uint64_t packets) override {
    lines.push_back(std::to_string(actor) + " missed " + std::to_string(packets));
  }
  std::vector<std::string> take() { return std::exchange(lines, {}); }

  std::vector<std::string> lines;
};

/// A rank of this process, with `buffer_count` live buffers, which a test fills.
class LiveFolder {
 public:
  static constexpr std::size_t buffer_bytes = 1024, buffer_count = 8;

  explicit LiveFolder(RankFacts facts = {}) : facts_(std::move(facts)) {
    facts_.complete = false;
    if (facts_.process == 0) facts_.process = static_cast<std::uint32_t>(::getpid());
    if (facts_.host == RankFacts().host) facts_.host = base::host_name();
    write_rank(folder(), facts_);
    const std::vector<std::string> empty(buffer_count, std::string(buffer_bytes, '\0'));
    write_file(live_file_, live_file(folder(), facts_.process, buffer_bytes, empty));
    std::filesystem::create_symlink(live_file_, folder() / live_link);
  }
  std::filesystem::path folder() const { return temporary_.path() / "rank-0000"; }
  const RankFacts& facts() const noexcept { return facts_; }

  /// Puts bytes into a buffer, as the program would: the reader's mapping sees them.
  void put(std::size_t buffer, const std::string& bytes) const {
    const base::FileDescriptor file(::open(live_file_.c_str(), O_WRONLY | O_CLOEXEC));
    std::string whole = bytes;
    whole.resize(buffer_bytes);
    const auto at = static_cast<off_t>(sizeof(LivePage) + buffer * buffer_bytes);
    if (::pwrite(file.get(), whole.data(), whole.size(), at) != static_cast<ssize_t>(whole.size()))
      throw std::runtime_error("no live file");
  }
  void put(std::size_t buffer, const PacketWriter& packet) const { put(buffer, packet.live_unfinished(buffer_bytes)); }
  void clear(std::size_t buffer) const { put(buffer, std::string()); }
  /// Appends packets to an actor's file.
  void flush(std::uint32_t actor, const std::string& packets) const {
    const auto file = stream_path(folder(), actor);
    write_file(file, read_file(file) + packets);
  }
  void remove_live() const {
    std::filesystem::remove(folder() / live_link);
    std::filesystem::remove(live_file_);
  }

 private:
  RankFacts facts_;
  TempFolder temporary_;
  std::filesystem::path live_file_ = temporary_.path() / "live";
};

}  // namespace tandem::trace::test
