// tools/launcher/output.hpp: merges the ranks' output line by line into one stream of the launcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tools/launcher/poll.hpp"

namespace tandem::tools {

/// Finds the end of a JSON object that begins with the first byte fed.
class ObjectEnd {
 public:
  enum class State { inside, ended, no_object };
  State feed(char byte) noexcept;

 private:
  unsigned depth_ = 0;
  bool in_string_ = false, escaped_ = false;
  bool looks_right_ = false;  ///< behind the first brace came a string or the end, as in every object
};

/// Merges the ranks' output into one stream. With labels, each line is "[rank] line", whole, without other ranks'
/// bytes. A line longer than `Limits::longest_line` is passed on in pieces, and ended early when another rank writes in
/// between, as is the line of a rank that writes while the lines that have not ended take more than
/// `Limits::most_held`; an unfinished line is passed on, with a newline, when the rank ends. All other bytes pass
/// unchanged. Without labels, everything passes at once. Pure: the result gathers in `queue`.
///
/// With `objects`, JSON objects of the first rank that prints one pass whole and without labels, so that a program can
/// read them. An object begins at the beginning of a line. One that does not end before the rank does, or within
/// `longest_object`, gets labels after all.
class LineMerger {
 public:
  static constexpr std::size_t longest_object = 64u << 20;
  struct Limits {  ///< in bytes
    std::size_t longest_line = 64u << 20;
    std::size_t most_held = 256u << 20;
  };

  explicit LineMerger(bool labels, bool objects = false) : LineMerger(labels, objects, Limits()) {}
  LineMerger(bool labels, bool objects, const Limits& limits)
      : labels_(labels), objects_(labels && objects), limits_(limits) {}
  void add(std::uint32_t rank, std::string_view bytes);
  void finish(std::uint32_t rank);

  std::string queue;

 private:
  void begin_line(std::uint32_t rank);
  void add_lines(std::uint32_t rank, std::string_view bytes);
  std::string_view add_to_object(std::uint32_t rank, std::string_view bytes);
  void give_up_object(std::uint32_t rank);

  const bool labels_, objects_;
  const Limits limits_;
  std::optional<std::uint32_t> speaker_;  ///< whose objects pass without labels
  std::string object_;                    ///< of the speaker, up to here; empty: none has begun
  ObjectEnd end_;                         ///< of that object
  bool swallow_newline_ = false;          ///< the speaker's next byte may be the newline behind its object
  std::map<std::uint32_t, std::string> partial_;  ///< bytes after a rank's last newline
  std::size_t held_ = 0;                          ///< bytes of all of these
  std::optional<std::uint32_t> open_;             ///< rank whose line in the queue has not ended
};

/// Writes a queue to a descriptor that others may share, so that it is left in blocking mode: small pieces, as long as
/// it is ready.
class StreamWriter {
 public:
  explicit StreamWriter(int descriptor) : descriptor_(descriptor) {}

  void collect(PollSet& polls, const std::string& queue) const {
    if (!queue.empty() && !broken_) polls.watch(descriptor_, POLLOUT);
  }
  /// Writes what can be written now and removes it from the queue. Once a write has failed, drops everything.
  void write_some(std::string& queue);
  bool broken() const noexcept { return broken_; }
  /// The error of the write that failed: EPIPE, the reader is gone; ENOSPC, the disk is full; ...
  int error() const noexcept { return error_; }
  int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
  bool broken_ = false;
  int error_ = 0;
};

}  // namespace tandem::tools
