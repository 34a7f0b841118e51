// tandem/analysis/tables/spill_memory.hpp: memory for large tables: main memory up to a budget, beyond it temporary
// files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "tandem/base/file_descriptor.hpp"

namespace tandem::analysis {

class SpillBlock;

/// Memory that the tables of a history may take.
struct SpillOptions {
  std::size_t main_bytes = std::size_t{1} << 30;     ///< in main memory, half of it for tables
  std::size_t window_bytes = std::size_t{256} << 20; ///< of those files: mapped pages that may be resident at a time
  std::filesystem::path folder = {};                 ///< of those files; empty: $TMPDIR, else /var/tmp

  /// Options with a window of a quarter of `bytes`.
  static SpillOptions of_main_memory(std::int64_t bytes) {
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
    return {.main_bytes = most, .window_bytes = most / 4};
  }
};

/// Tables stay until the end, so they take only half of the main memory: the temporary data of analyses is written more
/// often.
enum class SpillUse : std::uint8_t { temporary, table };

/// Shares a budget of main memory among blocks. A block without room there is in a temporary file without a name, so
/// that nothing remains when the process ends. The file is mapped, and the kernel can write its pages out under
/// pressure. Mapped pages count as resident memory of the process: when there are too many, all are unmapped (their
/// contents stay in the file).
///
/// Where no file can be made, or the disk is full, blocks stay in main memory. Blocks keep the object alive. One thread
/// at a time.
class SpillMemory {
 public:
  static std::shared_ptr<SpillMemory> make(SpillOptions options = {}) {
    return std::shared_ptr<SpillMemory>(new SpillMemory(std::move(options)));
  }
  SpillMemory(const SpillMemory&) = delete;
  SpillMemory& operator=(const SpillMemory&) = delete;

  /// Called for each row that a loop visits. Every `touches_between_looks` calls it checks how many pages of files are
  /// resident.
  void touch() noexcept {
    if (++touches_ < touches_between_looks) return;
    touches_ = 0;
    if (file_bytes_ > 0) look();
  }
  /// Unmaps the pages of all files.
  void drop_pages() noexcept;

  std::size_t main_bytes() const noexcept { return main_bytes_; }  ///< of blocks, mapped in main memory
  std::size_t file_bytes() const noexcept { return file_bytes_; }  ///< of blocks, in files

 private:
  friend class SpillBlock;
  static constexpr std::uint32_t touches_between_looks = 4096;

  explicit SpillMemory(SpillOptions options);
  void look() noexcept;
  base::FileDescriptor new_file() const;

  SpillOptions options_;
  std::set<SpillBlock*> in_files_;
  std::size_t main_bytes_ = 0, table_bytes_ = 0, file_bytes_ = 0;  ///< table_bytes_: the tables' part of main_bytes_
  std::uint32_t touches_ = 0;
  base::FileDescriptor statistics_;    ///< of the process: /proc/self/statm
  std::size_t others_bytes_ = 0;       ///< resident pages of other files when pages were last unmapped
};

/// Bytes that grow, all zero at first: small blocks on the heap, large ones mapped. A move-only value.
class SpillBlock {
 public:
  SpillBlock() = default;
  /// `memory` null: on the heap, whatever the size.
  explicit SpillBlock(std::shared_ptr<SpillMemory> memory, SpillUse use = SpillUse::temporary) noexcept
      : memory_(std::move(memory)), use_(use) {}
  SpillBlock(SpillBlock&& other) noexcept;
  SpillBlock& operator=(SpillBlock&& other) noexcept;
  ~SpillBlock() { free(); }

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool is_in_file() const noexcept { return static_cast<bool>(file_); }
  const std::shared_ptr<SpillMemory>& memory() const noexcept { return memory_; }
  /// Grows to at least `bytes` bytes; contents are kept, new bytes are 0, addresses change. Throws std::bad_alloc.
  void grow(std::size_t bytes);
  /// Returns the memory.
  void free() noexcept;

 private:
  friend class SpillMemory;
  static constexpr std::size_t least_mapped = std::size_t{1} << 20;

  void count_main(std::size_t more, std::size_t less) noexcept;
  void grow_on_heap(std::size_t bytes);
  void grow_in_main_memory(std::size_t bytes);
  bool grow_in_file(std::size_t bytes);
  void forget() noexcept;
  bool fits_into_main_memory(std::size_t bytes) const noexcept;

  std::shared_ptr<SpillMemory> memory_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool is_mapped_ = false;
  SpillUse use_ = SpillUse::temporary;
  base::FileDescriptor file_;
};

}  // namespace tandem::analysis
