// tools/launcher/output.cpp: labels, and writing without blocking.
#include "tools/launcher/output.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>

namespace tandem::tools {

/// Writes the label, unless the rank's own line is open: then the next bytes belong to it.
void LineMerger::begin_line(std::uint32_t rank) {
  if (open_ == rank) return;
  if (open_) queue += '\n';
  open_.reset();
  fmt::format_to(std::back_inserter(queue), "[{}] ", rank);
}

ObjectEnd::State ObjectEnd::feed(char byte) noexcept {
  if (in_string_) {
    if (escaped_) escaped_ = false;
    else if (byte == '\\') escaped_ = true;
    else if (byte == '"') in_string_ = false;
    return State::inside;
  }
  const bool blank = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
  if (depth_ == 0 && byte != '{') return State::no_object;
  if (depth_ == 1 && !looks_right_ && !blank) {
    if (byte != '"' && byte != '}') return State::no_object;
    looks_right_ = true;
  }
  if (byte == '"') in_string_ = true;
  if (byte == '{') ++depth_;
  if (byte == '}' && --depth_ == 0) return State::ended;
  return State::inside;
}

void LineMerger::add(std::uint32_t rank, std::string_view bytes) {
  if (!labels_) {
    queue += bytes;
    return;
  }
  if (swallow_newline_ && speaker_ == rank) {
    swallow_newline_ = false;
    if (bytes.starts_with('\n')) bytes.remove_prefix(1);
  }
  while (!bytes.empty()) {
    const bool in_object = !object_.empty() && speaker_ == rank;
    const auto known = partial_.find(rank);
    const bool at_begin = open_ != rank && (known == partial_.end() || known->second.empty());
    if (objects_ && (in_object || (at_begin && bytes.front() == '{' && speaker_.value_or(rank) == rank))) {
      bytes = add_to_object(rank, bytes);
      continue;
    }
    const auto newline = objects_ ? bytes.find('\n') : std::string_view::npos;
    const std::string_view line = bytes.substr(0, newline == std::string_view::npos ? bytes.size() : newline + 1);
    add_lines(rank, line);
    bytes.remove_prefix(line.size());
  }
}

/// Adds bytes to the object. Returns the bytes behind the object and the end of its line.
std::string_view LineMerger::add_to_object(std::uint32_t rank, std::string_view bytes) {
  if (object_.empty()) end_ = ObjectEnd();
  speaker_ = rank;
  std::size_t count = 0;
  ObjectEnd::State state = ObjectEnd::State::inside;
  while (count < bytes.size() && state == ObjectEnd::State::inside) state = end_.feed(bytes[count++]);
  object_ += bytes.substr(0, count);
  bytes.remove_prefix(count);
  if (state == ObjectEnd::State::ended) {
    if (open_) queue += '\n';
    open_.reset();
    queue += object_;
    queue += '\n';
    object_.clear();
    if (!bytes.empty() && bytes.front() == '\n') bytes.remove_prefix(1);
    else if (bytes.empty()) swallow_newline_ = true;
  } else if (state == ObjectEnd::State::no_object || object_.size() > longest_object) {
    if (state == ObjectEnd::State::no_object) speaker_.reset();
    give_up_object(rank);
  }
  return bytes;
}

void LineMerger::give_up_object(std::uint32_t rank) {
  const std::string text = std::move(object_);
  object_.clear();
  add_lines(rank, text);
}

void LineMerger::add_lines(std::uint32_t rank, std::string_view bytes) {
  std::string& partial = partial_[rank];
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    if (newline == std::string_view::npos) break;
    begin_line(rank);
    queue += partial;
    queue += bytes.substr(0, newline + 1);
    held_ -= partial.size();
    partial.clear();
    open_.reset();
    bytes.remove_prefix(newline + 1);
  }
  partial += bytes;
  held_ += bytes.size();
  if (partial.size() <= limits_.longest_line && held_ <= limits_.most_held) return;
  begin_line(rank);
  queue += partial;
  held_ -= partial.size();
  partial.clear();
  partial.shrink_to_fit();
  open_ = rank;
}

void LineMerger::finish(std::uint32_t rank) {
  if (speaker_ == rank && !object_.empty()) give_up_object(rank);
  const auto partial = partial_.extract(rank);
  if (!partial.empty() && !partial.mapped().empty()) {
    begin_line(rank);
    queue += partial.mapped();
    held_ -= partial.mapped().size();
    open_ = rank;
  }
  if (open_ == rank) {
    queue += '\n';
    open_.reset();
  }
}

void StreamWriter::write_some(std::string& queue) {
  std::size_t written = 0;
  while (!broken_ && written < queue.size()) {
    // A pipe that is ready takes PIPE_BUF bytes without blocking.
    pollfd ready{descriptor_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) break;
    const ssize_t count =
        write(descriptor_, queue.data() + written, std::min<std::size_t>(queue.size() - written, PIPE_BUF));
    if (count >= 0) written += static_cast<std::size_t>(count);
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) broken_ = true, error_ = errno;
  }
  broken_ ? queue.clear() : void(queue.erase(0, written));
}

}  // namespace tandem::tools
