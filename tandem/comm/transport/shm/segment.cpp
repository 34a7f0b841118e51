// tandem/comm/transport/shm/segment.cpp: sealed memory files and their mappings.
#include "tandem/comm/transport/shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/core.h>

namespace tandem::comm::internal {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

base::Error refused(const char* what) {
  return {base::ErrorCode::exhausted,
          fmt::format("shm: {} failed: {}; is memory or address space limited?", what, base::system_error_text(errno))};
}

bool map_at(std::byte* where, int file, std::size_t offset, std::size_t bytes) noexcept {
  return ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset)) ==
         where;
}

}  // namespace

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

bool RingSizes::valid() const noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  return std::has_single_bit(record_bytes) && std::has_single_bit(data_bytes) && record_bytes >= 8 * kPageBytes &&
         data_bytes >= 16 * kPageBytes && record_bytes <= kMost && data_bytes <= kMost;
}

base::Result<base::FileDescriptor> make_shared_file(const char* name, std::size_t bytes) {
  base::FileDescriptor file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return refused("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return refused("ftruncate of shared memory");
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return refused("sealing of shared memory");
  return file;
}

bool is_shared_file(int file, std::size_t bytes) noexcept {
  struct stat status{};
  if (::fstat(file, &status) != 0 || status.st_size != static_cast<off_t>(bytes)) return false;
  const int seals = ::fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

std::size_t segment_file_bytes(const RingSizes& sizes) noexcept {
  return kPageBytes + 2 * sizes.record_bytes + 2 * sizes.data_bytes;
}

base::Result<Segment> map_segment(int file, const RingSizes& sizes) {
  TANDEM_ASSERT(sizes.valid());
  const std::size_t bytes = kPageBytes + 4 * sizes.record_bytes + 2 * sizes.data_bytes;
  void* reserved = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return refused("reserving addresses for a segment");
  auto* at = static_cast<std::byte*>(reserved);
  Segment segment{.mapping = Mapping(at, bytes), .sizes = sizes};

  if (!map_at(at, file, 0, kPageBytes)) return refused("mapping a segment");
  auto* controls = reinterpret_cast<DirectionControl*>(at);
  segment.control = {controls, controls + 1};
  at += kPageBytes;
  std::size_t offset = kPageBytes;
  for (unsigned direction = 0; direction < 2; ++direction) {
    segment.records[direction] = at;
    for (unsigned copy = 0; copy < 2; ++copy, at += sizes.record_bytes)
      if (!map_at(at, file, offset, sizes.record_bytes)) return refused("mapping a segment");
    offset += sizes.record_bytes;
  }
  for (unsigned direction = 0; direction < 2; ++direction, at += sizes.data_bytes, offset += sizes.data_bytes) {
    segment.data[direction] = at;
    if (!map_at(at, file, offset, sizes.data_bytes)) return refused("mapping a segment");
  }
  return segment;
}

base::Result<Mapping> map_hub(int file) {
  void* at = ::mmap(nullptr, kHubBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return refused("mapping an endpoint's page");
  return Mapping(static_cast<std::byte*>(at), kHubBytes);
}

}  // namespace tandem::comm::internal
