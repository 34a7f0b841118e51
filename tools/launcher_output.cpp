// tools/launcher_output.cpp: labels, and writing without getting stuck.
#include "tools/launcher_output.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>
#include <fmt/format.h>

namespace tandem::tools {

/// Puts the label, unless the rank's own line is open: then the bytes to come belong to it.
void LineMerger::begin_line(std::uint32_t rank) {
  if (open_ == rank) return;
  if (open_) queue += '\n';
  open_.reset();
  fmt::format_to(std::back_inserter(queue), "[{}] ", rank);
}

void LineMerger::add(std::uint32_t rank, std::string_view bytes) {
  if (!labels_) {
    queue += bytes;
    return;
  }
  std::string& partial = partial_[rank];
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    if (newline == std::string_view::npos) break;
    begin_line(rank);
    queue += partial;
    queue += bytes.substr(0, newline + 1);
    partial.clear();
    open_.reset();
    bytes.remove_prefix(newline + 1);
  }
  partial += bytes;
  if (partial.size() <= longest_line) return;
  begin_line(rank);
  queue += partial;
  partial.clear();
  open_ = rank;
}

void LineMerger::finish(std::uint32_t rank) {
  const auto partial = partial_.extract(rank);
  if (!partial.empty() && !partial.mapped().empty()) {
    begin_line(rank);
    queue += partial.mapped();
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
    const ssize_t count = write(descriptor_, queue.data() + written, std::min<std::size_t>(queue.size() - written, PIPE_BUF));
    if (count >= 0) written += static_cast<std::size_t>(count);
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) broken_ = true;
  }
  broken_ ? queue.clear() : void(queue.erase(0, written));
}

}  // namespace tandem::tools
