// tandem/runtime/data/member_list.hpp: the tasks that a piece of data's next writer must wait for; two of them in
// place.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A list of task references, up to two inside the object and more on the heap. It keeps its memory when it is cleared,
/// so the steady state allocates nothing. Used by the submitting thread.
class MemberList {
 public:
  MemberList() noexcept {}
  MemberList(const MemberList&) = delete;
  MemberList& operator=(const MemberList&) = delete;
  ~MemberList() {
    if (on_heap()) std::free(heap_);
  }

  TaskRef* begin() noexcept { return on_heap() ? heap_ : inline_; }
  const TaskRef* begin() const noexcept { return on_heap() ? heap_ : inline_; }
  TaskRef* end() noexcept { return begin() + size_; }
  const TaskRef* end() const noexcept { return begin() + size_; }
  const TaskRef& front() const noexcept { return *begin(); }
  std::uint32_t size() const noexcept { return size_; }
  std::uint32_t capacity() const noexcept { return std::uint32_t{1} << log_capacity_; }
  bool empty() const noexcept { return size_ == 0; }

  void clear() noexcept { size_ = 0; }
  /// Forgets all but the first `size` entries.
  void shrink_to(std::uint32_t size) noexcept { size_ = size < size_ ? size : size_; }
  void push_back(const TaskRef& ref) {
    if (__builtin_expect(size_ == capacity(), 0)) make_room();
    begin()[size_++] = ref;
  }
  template <class Predicate>
  void erase_if(Predicate predicate) noexcept {
    TaskRef* entries = begin();
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < size_; ++i)
      if (!predicate(entries[i])) entries[kept++] = entries[i];
    size_ = kept;
  }

 private:
  static constexpr std::uint32_t kInline = 2;
  static constexpr std::uint8_t kLogInline = 1;
  bool on_heap() const noexcept { return log_capacity_ > kLogInline; }

  /// Drops entries of tasks that have ended; grows when that does not free half of the list.
  void make_room() {
    erase_if([](const TaskRef& ref) { return has_ended(ref); });
    if (size_ * 2 <= capacity()) return;
    auto* heap = static_cast<TaskRef*>(std::malloc(2 * std::size_t{capacity()} * sizeof(TaskRef)));
    if (heap == nullptr) throw std::bad_alloc();
    for (std::uint32_t i = 0; i < size_; ++i) heap[i] = begin()[i];
    if (on_heap()) std::free(heap_);
    heap_ = heap;
    ++log_capacity_;
  }

  union {
    TaskRef inline_[kInline] = {};
    TaskRef* heap_;
  };
  std::uint32_t size_ = 0;
  std::uint8_t log_capacity_ = kLogInline;
};

}  // namespace tandem::runtime
