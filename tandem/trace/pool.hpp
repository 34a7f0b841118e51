// tandem/trace/pool.hpp: the memory of a trace: buffers in a file in shared memory, so that they survive their program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tandem/base/index_stack.hpp"
#include "tandem/base/result.hpp"
#include "tandem/trace/packet.hpp"

namespace tandem::trace {

/// One buffer, which becomes one packet. Its owner is the pool, then the stream that took it, then the flusher.
struct Buffer {
  Buffer* next = nullptr;  ///< in the list of full buffers
  std::byte* memory = nullptr;
  std::uint32_t index = 0;
  std::uint32_t content_bytes = 0;  ///< of a full buffer, header included

  PacketHeader& header() noexcept { return *reinterpret_cast<PacketHeader*>(memory); }
};

/// Buffers of equal size. `make` touches all their pages, so that no probe has a page fault. Contents stay until they
/// are overwritten.
///
/// Threads: any thread may call `take` and `give_back`, which do not wait (`base::IndexStack`). `take` gives the buffer
/// that was returned last, since it is in a cache. Each NUMA node has its part; a thread that finds it empty takes from
/// the others.
class BufferPool {
 public:
  struct Options {
    std::size_t buffer_bytes = 64 << 10;  ///< a multiple of 64
    std::uint32_t count = 256;
    std::filesystem::path live_folder = "/dev/shm";
    std::string rank_folder = {};         ///< absolute; stored in the live file, for recovery
    unsigned numa_nodes = 1;
    /// Binds memory to a node: called once for each node, before the memory is touched. Null: memory is not bound.
    void (*bind)(void* memory, std::size_t bytes, unsigned node, void* context) = nullptr;
    void* context = nullptr;
  };
  /// Errors: io, exhausted (no room in shared memory; the message has the size).
  static base::Result<std::unique_ptr<BufferPool>> make(const Options& options);
  ~BufferPool();  ///< removes the live file
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  Buffer* take(unsigned node) noexcept;  ///< null: none is free
  /// One buffer beyond `Options::count`, in ordinary memory, which a recovery does not find: for actors that must lose
  /// nothing while others have all buffers. `take` returns it again after its return. Null: no memory is left. Takes a
  /// lock.
  Buffer* take_beyond() noexcept;
  void give_back(Buffer& buffer) noexcept;
  /// Marks the buffer as empty, for a recovery of the memory.
  static void clear(Buffer& buffer) noexcept;

  /// Number of buffers, without those of `take_beyond`.
  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(buffers_.size()); }
  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }
  const std::filesystem::path& live_file() const noexcept { return file_; }
  std::span<const std::byte> live_memory() const noexcept { return {memory_, bytes_}; }

 private:
  BufferPool() = default;

  std::filesystem::path file_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t buffer_bytes_ = 0;
  std::vector<Buffer> buffers_;
  std::uint32_t per_node_ = 1;
  std::vector<std::unique_ptr<base::IndexStack<>>> free_;  ///< a stack per NUMA node, of indices in all

  static constexpr std::uint32_t kBeyond = UINT32_MAX;  ///< `Buffer::index` of buffers beyond
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  struct Beyond {
    Buffer buffer;
    std::unique_ptr<std::byte, Free> memory;
  };
  std::mutex beyond_mutex_;  ///< guards the lists below
  std::vector<std::unique_ptr<Beyond>> beyond_;
  std::vector<Buffer*> beyond_free_;
  std::atomic<std::size_t> beyond_count_{0};  ///< free buffers beyond; a hint for `take`, which checks under the lock
};

}  // namespace tandem::trace
