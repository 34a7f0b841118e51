// tandem/runtime/task/pool.cpp: slabs of tasks and of links.
#include "tandem/runtime/task/pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::runtime {

namespace {
/// Slabs start small, and grow until each fills a huge page.
constexpr std::size_t kFirstSlabBytes = 64 * 1024;
constexpr std::size_t kLargestSlabBytes = 2 * 1024 * 1024;
constexpr std::size_t kFirstBytes = 4096;                           ///< of tasks that are made first
constexpr std::size_t kFirstLinkChunks = 8, kMostLinkChunks = 256;  ///< of a slab
}  // namespace

TaskPool::~TaskPool() = default;

std::size_t TaskPool::large_class(std::size_t bytes) noexcept {
  std::size_t size_class = kSmallClasses;
  while (bytes_of_class(size_class) < bytes) ++size_class;
  TANDEM_ASSERT(size_class < kClasses);
  return size_class;
}

void TaskPool::refill(std::size_t size_class) {
  // Tasks are taken one at a time: each is in the cache of the worker that ended it, and is prefetched while the one
  // before is filled.
  if (handed_back_ == nullptr) handed_back_ = returned_.take_all();
  while (handed_back_ != nullptr) {
    Task* const task = handed_back_;
    handed_back_ = task->next;
    fetch(handed_back_);
    recycle(task);
    if (free_[size_class] != nullptr) return;
  }
  make(size_class);
}

/// Makes tasks in memory that was not touched before: as many bytes of them as there are already, so that a program of
/// few tasks touches few pages.
void TaskPool::make(std::size_t size_class) {
  const std::size_t task_bytes = bytes_of_class(size_class);
  if (open_[size_class] == 0) {
    const std::size_t slab_bytes = std::max(task_bytes, std::clamp(bytes_, kFirstSlabBytes, kLargestSlabBytes));
    auto block = base::allocate_large(slab_bytes);
    if (block == nullptr) throw std::bad_alloc();
    slabs_.push_back({std::move(block), task_bytes, 0, slab_bytes / task_bytes});
    open_[size_class] = slabs_.size();
    bytes_ += slab_bytes;
  }
  Slab& slab = slabs_[open_[size_class] - 1];
  const std::size_t wanted = std::max<std::size_t>(1, std::max(kFirstBytes, made_bytes_) / task_bytes);
  const std::size_t first = std::exchange(slab.count, std::min(slab.count + wanted, slab.capacity));
  made_bytes_ += (slab.count - first) * task_bytes;
  if (slab.count == slab.capacity) open_[size_class] = 0;
  for (std::size_t i = slab.count; i-- > first;) {
    auto* task = new (slab.memory.get() + i * task_bytes) Task;
    task->size_class = static_cast<std::uint8_t>(size_class);
    task->successors.seal();
    task->next = free_[size_class];
    free_[size_class] = task;
  }
}

void TaskPool::recycle(Task* task) {
  if (task->extra != nullptr) clear(*task->extra);
  task->next = free_[task->size_class];
  free_[task->size_class] = task;
}

void TaskPool::clear(TaskExtra& extra) noexcept {
  free_links(extra);
  extra.name.clear();
  extra.on_ready = nullptr;
  extra.on_expected = nullptr;
  extra.context = nullptr;
  extra.callback = nullptr;
  extra.node = 0;
  extra.is_hint = extra.asks = false;
  extra.sources = 0;
  extra.memory = EventMemory::within;
  extra.facts = {};
}

void TaskPool::release_extra(Task& task) noexcept {
  if (task.extra == nullptr) return;
  clear(*task.extra);
  free_extras_.push_back(std::exchange(task.extra, nullptr));  // has room, since `extra_of` reserves it
}

std::size_t TaskPool::collect() {
  std::size_t count = 0;
  for (Task* list : {std::exchange(handed_back_, nullptr), returned_.take_all()})
    for (Task* task = list; task != nullptr; ++count) {
      Task* next = task->next;
      recycle(task);
      task = next;
    }
  return count;
}

TaskExtra& TaskPool::extra_of(Task& task) {
  if (task.extra != nullptr) return *task.extra;
  if (!free_extras_.empty()) {
    task.extra = free_extras_.back();
    free_extras_.pop_back();
    return *task.extra;
  }
  task.extra = extras_.emplace_back(std::make_unique<TaskExtra>()).get();
  free_extras_.reserve(extras_.capacity());
  return *task.extra;
}

Link* TaskPool::extra_link(Task& task) {
  TaskExtra& extra = extra_of(task);
  if (extra.links == nullptr || extra.links->used == LinkChunk::kLinks) {
    if (free_links_ == nullptr) {
      const std::size_t count = std::clamp(link_chunks_, kFirstLinkChunks, kMostLinkChunks);
      auto& slab = link_slabs_.emplace_back(std::make_unique<LinkChunk[]>(count));
      link_chunks_ += count;
      bytes_ += count * sizeof(LinkChunk);
      for (std::size_t i = 0; i < count; ++i) {
        slab[i].next = free_links_;
        free_links_ = &slab[i];
      }
    }
    LinkChunk* chunk = free_links_;
    free_links_ = chunk->next;
    chunk->used = 0;
    chunk->next = extra.links;
    extra.links = chunk;
  }
  return &extra.links->links[extra.links->used++];
}

bool TaskPool::check_invariants() const noexcept {
  std::size_t most = 0;
  for (const Slab& slab : slabs_) most += slab.count;
  std::size_t free_tasks = 0;
  for (std::size_t size_class = 0; size_class < kClasses; ++size_class)
    for (const Task* task = free_[size_class]; task != nullptr; task = task->next) {
      const bool holds_links = task->extra != nullptr && task->extra->links != nullptr;
      if (++free_tasks > most || task->size_class != size_class || !task->successors.sealed() || holds_links)
        return false;
    }
  std::size_t free_chunks = 0;
  for (const LinkChunk* chunk = free_links_; chunk != nullptr; chunk = chunk->next)
    if (++free_chunks > link_chunks_) return false;
  for (const TaskExtra* extra : free_extras_)
    if (extra->links != nullptr || extra->callback) return false;
  return free_extras_.size() <= extras_.size();
}

void TaskPool::free_links(TaskExtra& extra) noexcept {
  while (extra.links != nullptr) {
    LinkChunk* next = extra.links->next;
    extra.links->next = free_links_;
    free_links_ = extra.links;
    extra.links = next;
  }
}

}  // namespace tandem::runtime
