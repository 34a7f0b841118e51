// tandem/trace/stream_files.hpp: appends packets to the files of a rank's streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/owned_file.hpp"
#include "tandem/base/result.hpp"

namespace tandem::trace {

/// Opens files when they are needed, and keeps at most `most_open` of them open. One thread at a time. When the disk is
/// full it removes the incomplete packet, so that files hold whole packets.
class StreamFiles {
 public:
  /// `folder` outlives the object.
  explicit StreamFiles(const base::OwnedFolder& folder) : folder_(folder) {}
  StreamFiles(const StreamFiles&) = delete;
  StreamFiles& operator=(const StreamFiles&) = delete;

  /// Appends a packet. Errors: io (also: a link, or another user's file, has the stream's name), exhausted (the disk is
  /// full); then the file is unchanged.
  base::Result<void> add(std::uint32_t actor, std::span<const std::byte> packet);

 private:
  static constexpr std::size_t most_open = 128;
  struct File {
    std::optional<base::OwnedFile> opened;
    std::uint64_t bytes = 0;
  };
  const base::OwnedFolder& folder_;
  std::vector<File> files_;
  std::deque<std::uint32_t> open_;  ///< actors whose files are open, in the order of their opening
};

}  // namespace tandem::trace
