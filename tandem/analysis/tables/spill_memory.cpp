// tandem/analysis/tables/spill_memory.cpp: maps blocks in main memory and in temporary files, and unmaps pages that
// need not be resident.
#include "tandem/analysis/tables/spill_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>

namespace tandem::analysis {
namespace {

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

SpillMemory::SpillMemory(SpillOptions options)
    : options_(std::move(options)), statistics_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {
  if (!options_.folder.empty()) return;
  const char* const folder = std::getenv("TMPDIR");
  options_.folder = folder != nullptr && *folder != 0 ? folder : "/var/tmp";
}

base::FileDescriptor SpillMemory::new_file() const {
  base::FileDescriptor file(::open(options_.folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  // Some file systems have no nameless files.
  std::string name = options_.folder / "tandem-XXXXXX";
  file = base::FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (file) ::unlink(name.c_str());
  return file;
}

void SpillMemory::drop_pages() noexcept {
  for (const SpillBlock* const block : in_files_) ::madvise(block->data_, block->bytes_, MADV_DONTNEED);
}

/// Reads the third number of statm: resident pages of files, including those of the program and of the trace.
void SpillMemory::look() noexcept {
  const auto resident = [&]() -> std::optional<std::size_t> {
    std::array<char, 128> text = {};
    if (::pread(statistics_.get(), text.data(), text.size() - 1, 0) <= 0) return std::nullopt;
    char* at = text.data();
    std::strtoull(at, &at, 10);
    std::strtoull(at, &at, 10);
    return std::strtoull(at, &at, 10) * page_bytes();
  };
  if (const auto before = resident(); before && *before <= others_bytes_ + options_.window_bytes) return;
  drop_pages();
  others_bytes_ = resident().value_or(0);
}

SpillBlock::SpillBlock(SpillBlock&& other) noexcept { *this = std::move(other); }

SpillBlock& SpillBlock::operator=(SpillBlock&& other) noexcept {
  if (this == &other) return *this;
  free();
  memory_ = other.memory_;
  use_ = other.use_;
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  is_mapped_ = std::exchange(other.is_mapped_, false);
  file_ = std::move(other.file_);
  if (file_) {
    memory_->in_files_.erase(&other);
    memory_->in_files_.insert(this);
  }
  return *this;
}

void SpillBlock::forget() noexcept {
  if (file_) {
    memory_->in_files_.erase(this);
    memory_->file_bytes_ -= bytes_;
  } else if (is_mapped_) {
    count_main(0, bytes_);
  }
}

void SpillBlock::count_main(std::size_t more, std::size_t less) noexcept {
  memory_->main_bytes_ += more - less;
  if (use_ == SpillUse::table) memory_->table_bytes_ += more - less;
}

/// Whether this block may have `bytes` bytes in main memory.
bool SpillBlock::fits_into_main_memory(std::size_t bytes) const noexcept {
  const std::size_t own = is_mapped_ && !file_ ? bytes_ : 0, most = memory_->options_.main_bytes;
  if (use_ == SpillUse::table && memory_->table_bytes_ - own + bytes > most / 2) return false;
  return memory_->main_bytes_ - own + bytes <= most;
}

void SpillBlock::free() noexcept {
  forget();
  if (is_mapped_) ::munmap(data_, bytes_);
  else std::free(data_);
  file_.close();
  data_ = nullptr;
  bytes_ = 0;
  is_mapped_ = false;
}

void SpillBlock::grow(std::size_t bytes) {
  if (bytes <= bytes_) return;
  if (memory_ == nullptr || bytes < least_mapped) return grow_on_heap(bytes);
  bytes = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  if ((file_ || !fits_into_main_memory(bytes)) && grow_in_file(bytes)) return;
  grow_in_main_memory(bytes);
}

void SpillBlock::grow_on_heap(std::size_t bytes) {
  void* const data = std::realloc(data_, bytes);
  if (data == nullptr) throw std::bad_alloc();
  std::memset(static_cast<std::byte*>(data) + bytes_, 0, bytes - bytes_);
  data_ = data;
  bytes_ = bytes;
}

void SpillBlock::grow_in_main_memory(std::size_t bytes) {
  if (is_mapped_ && !file_) {
    void* const data = ::mremap(data_, bytes_, bytes, MREMAP_MAYMOVE);
    if (data == MAP_FAILED) throw std::bad_alloc();
    count_main(bytes, bytes_);
    data_ = data;
    bytes_ = bytes;
    return;
  }
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  if (bytes_ > 0) std::memcpy(data, data_, bytes_);
  free();
  data_ = data;
  bytes_ = bytes;
  is_mapped_ = true;
  count_main(bytes, 0);
}

/// Grows in a file. False, without effect: there is no room on the disk, or no file. Blocks of the file are allocated
/// now: a full disk would cause a signal later.
bool SpillBlock::grow_in_file(std::size_t bytes) {
  if (file_) {
    if (::fallocate(file_.get(), 0, static_cast<off_t>(bytes_), static_cast<off_t>(bytes - bytes_)) != 0) return false;
    void* const data = ::mremap(data_, bytes_, bytes, MREMAP_MAYMOVE);
    if (data == MAP_FAILED) return false;
    memory_->file_bytes_ += bytes - bytes_;
    data_ = data;
    bytes_ = bytes;
    return true;
  }
  base::FileDescriptor file = memory_->new_file();
  if (!file || ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) return false;
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return false;
  // Copies piece by piece, so that the contents are not resident twice.
  constexpr std::size_t piece_bytes = std::size_t{4} << 20;
  for (std::size_t at = 0; at < bytes_; at += piece_bytes) {
    const std::size_t piece = std::min(piece_bytes, bytes_ - at);
    std::memcpy(static_cast<std::byte*>(data) + at, static_cast<const std::byte*>(data_) + at, piece);
    ::madvise(static_cast<std::byte*>(data) + at, piece, MADV_DONTNEED);
    if (is_mapped_) ::madvise(static_cast<std::byte*>(data_) + at, piece, MADV_DONTNEED);
  }
  free();
  data_ = data;
  bytes_ = bytes;
  is_mapped_ = true;
  file_ = std::move(file);
  memory_->in_files_.insert(this);
  memory_->file_bytes_ += bytes;
  return true;
}

}  // namespace tandem::analysis
