// tandem/trace/pool.cpp: makes the live file, and hands out its buffers.
#include "tandem/trace/pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/trace/live.hpp"

namespace tandem::trace {

namespace {

constexpr std::align_val_t kAlignment{64};

base::Error refused(std::string_view what, const std::filesystem::path& file, std::size_t bytes) {
  const int error = errno;
  const bool full = error == ENOSPC || error == ENOMEM;
  return {
      full ? base::ErrorCode::exhausted : base::ErrorCode::io,
      fmt::format(
          "{} {} for the trace's live buffers ({} KiB): {}{}", what, file.string(), bytes >> 10, std::strerror(error),
          full ? "; ask for less by --tandem.trace.memory, or name a folder with room by --tandem.trace.live" : "")};
}

constexpr unsigned kOrdinaryAttempts = 16, kMostAttempts = 32;

/// A name that no other pool of this machine has. Other users can take names in such a folder, so after some attempts
/// it is random.
std::filesystem::path fresh_name(const std::filesystem::path& folder, unsigned attempt) {
  if (attempt < kOrdinaryAttempts) return folder / fmt::format("{}{}.{}", live_prefix, ::getpid(), attempt);
  std::random_device random;
  return folder / fmt::format("{}{}.{:08x}{:08x}", live_prefix, ::getpid(), random(), random());
}

}  // namespace

base::Result<std::unique_ptr<BufferPool>> BufferPool::make(const Options& options) {
  std::unique_ptr<BufferPool> pool(new BufferPool);
  pool->buffer_bytes_ = options.buffer_bytes;
  pool->bytes_ = sizeof(LivePage) + options.buffer_bytes * options.count;
  base::FileDescriptor file;
  for (unsigned attempt = 0; !file; ++attempt) {
    pool->file_ = fresh_name(options.live_folder, attempt);
    file = base::FileDescriptor(::open(pool->file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && (errno != EEXIST || attempt == kMostAttempts)) {
      const base::Error error = refused("cannot make", pool->file_, pool->bytes_);
      pool->file_.clear();
      return error;
    }
  }
  void* memory = MAP_FAILED;
  if (::ftruncate(file.get(), static_cast<off_t>(pool->bytes_)) == 0)
    memory = ::mmap(nullptr, pool->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) {
    return refused("cannot map", pool->file_, pool->bytes_);
  }
  pool->memory_ = static_cast<std::byte*>(memory);

  const unsigned nodes = std::max(1u, options.numa_nodes);
  pool->per_node_ = std::max(1u, (options.count + nodes - 1) / nodes);
  std::byte* const buffers = pool->memory_ + sizeof(LivePage);
  for (unsigned node = 0; node < nodes && options.bind != nullptr; ++node) {
    const std::size_t first = std::min<std::size_t>(std::size_t{node} * pool->per_node_, options.count);
    const std::size_t last = std::min<std::size_t>(first + pool->per_node_, options.count);
    if (last > first)
      options.bind(buffers + first * options.buffer_bytes, (last - first) * options.buffer_bytes, node,
                   options.context);
  }
  // Allocates now: later, lack of memory would be a signal. This follows the binding, so that pages are on their nodes.
  const int allocated = ::posix_fallocate(file.get(), 0, static_cast<off_t>(pool->bytes_));
  file.close();
  if (allocated != 0) {
    errno = allocated;
    return refused("no room in", pool->file_, pool->bytes_);
  }
  std::memset(buffers, 0, options.buffer_bytes * options.count);  // touches all pages
  LivePage page;
  page.buffer_bytes = static_cast<std::uint32_t>(options.buffer_bytes);
  page.buffers = options.count;
  page.process = static_cast<std::uint32_t>(::getpid());
  const std::size_t length = std::min(options.rank_folder.size(), sizeof(page.folder) - 1);
  std::memcpy(page.folder, options.rank_folder.data(), length);
  std::memcpy(pool->memory_, &page, sizeof(page));

  pool->buffers_.resize(options.count);
  for (unsigned node = 0; node < nodes; ++node)
    pool->free_.push_back(std::make_unique<base::IndexStack<>>(options.count));
  for (std::uint32_t i = options.count; i-- > 0;) {
    pool->buffers_[i].memory = buffers + std::size_t{i} * options.buffer_bytes;
    pool->buffers_[i].index = i;
    pool->free_[i / pool->per_node_]->put(i);
  }
  return pool;
}

BufferPool::~BufferPool() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
  if (!file_.empty()) ::unlink(file_.c_str());
}

Buffer* BufferPool::take(unsigned node) noexcept {
  const std::size_t nodes = free_.size();
  for (std::size_t step = 0; step < nodes; ++step)
    if (const auto index = free_[(node + step) % nodes]->take()) return &buffers_[*index];
  if (beyond_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard guard(beyond_mutex_);
  if (beyond_free_.empty()) return nullptr;
  Buffer* const buffer = beyond_free_.back();
  beyond_free_.pop_back();
  beyond_count_.store(beyond_free_.size(), std::memory_order_relaxed);
  return buffer;
}

Buffer* BufferPool::take_beyond() noexcept {
  try {
    auto more = std::make_unique<Beyond>();
    more->memory.reset(static_cast<std::byte*>(::operator new(buffer_bytes_, kAlignment)));
    std::memset(more->memory.get(), 0, buffer_bytes_);
    more->buffer.memory = more->memory.get();
    more->buffer.index = kBeyond;
    const std::lock_guard guard(beyond_mutex_);
    beyond_free_.reserve(beyond_.size() + 1);  // so that `give_back` never allocates
    return &beyond_.emplace_back(std::move(more))->buffer;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void BufferPool::Free::operator()(std::byte* memory) const noexcept { ::operator delete(memory, kAlignment); }

void BufferPool::clear(Buffer& buffer) noexcept {
  std::atomic_ref<std::uint32_t>(buffer.header().magic).store(0, std::memory_order_release);
  buffer.content_bytes = 0;
}

void BufferPool::give_back(Buffer& buffer) noexcept {
  clear(buffer);
  if (buffer.index != kBeyond) return free_[buffer.index / per_node_]->put(buffer.index);
  const std::lock_guard guard(beyond_mutex_);
  beyond_free_.push_back(&buffer);
  beyond_count_.store(beyond_free_.size(), std::memory_order_relaxed);
}

}  // namespace tandem::trace
