// tandem/trace/stream_files.cpp: writes packets.
#include "tandem/trace/stream_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
  const std::filesystem::path path = folder_ / stream_file_name(actor);
  if (files_.size() <= actor) files_.resize(actor + 1);
  File& file = files_[actor];
  if (!file.descriptor) {
    if (open_.size() == most_open) {
      files_[open_.front()].descriptor.close();
      open_.pop_front();
    }
    file.descriptor = base::FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file.descriptor) return refused("make", path);
    open_.push_back(actor);
  }
  std::size_t written = 0;
  while (written < packet.size()) {
    const ssize_t count = ::write(file.descriptor.get(), packet.data() + written, packet.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const base::Error error = refused("write", path);
      if (written > 0 && ::ftruncate(file.descriptor.get(), static_cast<off_t>(file.bytes)) != 0) return refused("shorten", path);
      return error;
    }
    written += static_cast<std::size_t>(count);
  }
  file.bytes += packet.size();
  return {};
}

}  // namespace tandem::trace
