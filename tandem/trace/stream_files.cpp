// tandem/trace/stream_files.cpp: writes packets.
#include "tandem/trace/stream_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "tandem/trace/layout.hpp"

namespace tandem::trace {

namespace {

base::Error refused(std::string_view what, const std::filesystem::path& file) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT;
  return {full ? base::ErrorCode::exhausted : base::ErrorCode::io,
          fmt::format("cannot {} the trace's file {}: {}", what, file.string(), std::strerror(error))};
}

}  // namespace

base::Result<void> StreamFiles::add(std::uint32_t actor, std::span<const std::byte> packet) {
  if (files_.size() <= actor) files_.resize(actor + 1);
  File& file = files_[actor];
  if (!file.opened) {
    if (open_.size() == most_open) {
      files_[open_.front()].opened.reset();
      open_.pop_front();
    }
    auto opened = folder_.file(stream_file_name(actor), O_WRONLY | O_CREAT | O_APPEND);
    if (!opened) return base::Error{opened.error().code, "cannot make the trace's file " + opened.error().message};
    file.opened = std::move(opened).value();
    open_.push_back(actor);
  }
  std::size_t written = 0;
  while (written < packet.size()) {
    const ssize_t count = ::write(file.opened->descriptor(), packet.data() + written, packet.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const base::Error error = refused("write", file.opened->path());
      if (written > 0 && !file.opened->resize(file.bytes)) return refused("shorten", file.opened->path());
      return error;
    }
    written += static_cast<std::size_t>(count);
  }
  file.bytes += packet.size();
  return {};
}

}  // namespace tandem::trace
