// tandem/runtime/memory/page_locked_pool.cpp: allocates page-locked memory, and keeps it.
#include "tandem/runtime/memory/page_locked_pool.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::runtime {

namespace {

constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
bool is_large(std::size_t bytes) { return bytes >= SmallBlocks::kLarge; }
std::size_t size_of(std::size_t bytes) { return is_large(bytes) ? whole_pages(bytes) : SmallBlocks::rounded(bytes); }

class PageLockedMemory final : public MemoryNode {
 public:
  explicit PageLockedMemory(std::shared_ptr<PageLockedPool> pool) : pool_(std::move(pool)) {}
  std::string name() const override { return plain_->name(); }
  void* allocate(std::size_t bytes) override {
    void* const memory = pool_->allocate(bytes);
    return memory != nullptr ? memory : plain_->allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    if (!pool_->release(memory, bytes)) plain_->release(memory, bytes);
  }

 private:
  const std::shared_ptr<PageLockedPool> pool_;
  const std::unique_ptr<MemoryNode> plain_ = make_main_memory();
};

}  // namespace

PageLockedPool::PageLockedPool(std::unique_ptr<PageLocker> locker, std::size_t bound, base::Log& log)
    : locker_(std::move(locker)), log_(log) {
  report_.bound = bound;
}

PageLockedPool::~PageLockedPool() {
  make_room(report_.bound);
  for (void* const chunk : chunks_) locker_->release(chunk);
  for (void* const memory : large_) locker_->release(memory);
}

void* PageLockedPool::allocate(std::size_t bytes) {
  const std::size_t size = size_of(std::min(bytes, kMostDataBytes));
  const std::lock_guard guard(mutex_);
  void* memory = nullptr;
  try {
    if (bytes <= kMostDataBytes) memory = is_large(bytes) ? take_large(size) : small_.take(bytes, [this] {
      void* const chunk = ask(SmallBlocks::kChunk);
      if (chunk != nullptr) chunks_.insert(chunk);
      return chunk;
    });
  } catch (const std::bad_alloc&) {  // no memory for the records: the new block is lost
  }
  if (memory == nullptr) {
    ++report_.refused;
    report_.refused_bytes += bytes;
    return nullptr;
  }
  ++report_.allocations;
  report_.used += size;
  report_.most_used = std::max(report_.most_used, report_.used);
  return memory;
}

void* PageLockedPool::take_large(std::size_t size) {
  if (const auto kept = kept_.find(size); kept != kept_.end() && !kept->second.empty()) {
    void* const memory = kept->second.back();
    large_.insert(memory);
    kept->second.pop_back();
    return memory;
  }
  void* const memory = ask(size);
  if (memory != nullptr) large_.insert(memory);
  return memory;
}

/// Gets new memory from the driver, within the bound.
void* PageLockedPool::ask(std::size_t size) {
  if (refused_ || size > report_.bound) return nullptr;
  if (report_.locked + size > report_.bound) make_room(size);
  if (report_.locked + size > report_.bound) return nullptr;
  std::string why;
  void* const memory = locker_->allocate(size, why);
  if (memory == nullptr) {
    refused_ = true;
    log_.warn(
        "there is no page-locked memory beyond {} bytes, and copies from and to devices are slower from here on: {}; a "
        "limit for locked memory (ulimit -l) "
        "may be the reason, or lower option cuda.page_locked",
        report_.locked, why);
    return nullptr;
  }
  report_.locked += size;
  ++report_.from_driver;
  return memory;
}

/// Returns free large blocks to the driver, until `size` bytes fit.
void PageLockedPool::make_room(std::size_t size) noexcept {
  for (auto& [kept_size, blocks] : kept_)
    while (!blocks.empty() && report_.locked + size > report_.bound) {
      locker_->release(blocks.back());
      blocks.pop_back();
      report_.locked -= kept_size;
    }
}

bool PageLockedPool::release(void* memory, std::size_t bytes) noexcept {
  const std::size_t size = size_of(std::min(bytes, kMostDataBytes));
  const std::lock_guard guard(mutex_);
  if (is_large(bytes)) {
    if (large_.erase(memory) == 0) return false;
    report_.used -= size;
    try {
      kept_[size].push_back(memory);
    } catch (...) {  // no memory to remember the block
      locker_->release(memory);
      report_.locked -= size;
    }
    return true;
  }
  const auto behind = chunks_.upper_bound(memory);
  if (behind == chunks_.begin()) return false;
  if (static_cast<std::byte*>(memory) >= static_cast<std::byte*>(*std::prev(behind)) + SmallBlocks::kChunk)
    return false;
  report_.used -= size;
  small_.give_back(memory, bytes);
  return true;
}

PageLockedReport PageLockedPool::report() const {
  const std::lock_guard guard(mutex_);
  return report_;
}

std::unique_ptr<MemoryNode> make_page_locked_memory(std::shared_ptr<PageLockedPool> pool) {
  return std::make_unique<PageLockedMemory>(std::move(pool));
}

}  // namespace tandem::runtime
