// tandem/analysis/tables/spill_vector.hpp: a vector for tables that need not fit into main memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "tandem/analysis/tables/spill_memory.hpp"

namespace tandem::analysis {

/// Elements in one piece on the heap, in main memory or in a temporary file, as its `SpillMemory` decides; without one,
/// on the heap. A move-only value. Growing changes the addresses of all elements.
template <class T>
class SpillVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SpillVector() = default;
  explicit SpillVector(std::shared_ptr<SpillMemory> memory, SpillUse use = SpillUse::temporary) noexcept
      : block_(std::move(memory), use) {}
  SpillVector(SpillVector&& other) noexcept
      : block_(std::move(other.block_)),
        size_(std::exchange(other.size_, 0)),
        written_(std::exchange(other.written_, 0)) {}
  SpillVector& operator=(SpillVector&& other) noexcept {
    block_ = std::move(other.block_);
    size_ = std::exchange(other.size_, 0);
    written_ = std::exchange(other.written_, 0);
    return *this;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return static_cast<T*>(block_.data()); }
  const T* data() const noexcept { return static_cast<const T*>(block_.data()); }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  const T& at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("SpillVector::at");
    return data()[i];
  }
  T& front() noexcept { return data()[0]; }
  const T& front() const noexcept { return data()[0]; }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& back() const noexcept { return data()[size_ - 1]; }

  void push_back(const T& value) { emplace_back(value); }
  /// Adds an element, and touches the memory as `SpillMemory::touch`.
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    const T value{std::forward<Arguments>(arguments)...};  // may be an element of this vector
    if (size_ == capacity()) grow(size_ + 1);
    touch();
    written_ = std::max(written_, size_ + 1);
    return data()[size_++] = value;
  }
  /// Changes the size. New elements have all bits 0.
  void resize(std::size_t size) {
    if (size > capacity()) grow(size);
    if (size > size_ && written_ > size_)
      std::memset(static_cast<void*>(data() + size_), 0, (std::min(size, written_) - size_) * sizeof(T));
    written_ = std::max(written_, size);
    size_ = size;
  }
  void resize(std::size_t size, const T& value) {
    const std::size_t before = size_;
    resize(size);
    for (std::size_t i = before; i < size; ++i) {
      data()[i] = value;
      touch();
    }
  }
  void pop_back() noexcept { --size_; }
  void swap(SpillVector& other) noexcept { std::swap(*this, other); }
  /// Returns all memory.
  void free() noexcept {
    block_.free();
    size_ = written_ = 0;
  }
  void touch() const noexcept {
    if (block_.memory() != nullptr) block_.memory()->touch();
  }
  const std::shared_ptr<SpillMemory>& memory() const noexcept { return block_.memory(); }

 private:
  std::size_t capacity() const noexcept { return block_.bytes() / sizeof(T); }
  void grow(std::size_t least) {
    const std::size_t elements = std::max({least, capacity() + capacity() / 2, std::size_t{16}});
    block_.grow(elements * sizeof(T));
  }

  SpillBlock block_;
  std::size_t size_ = 0;
  std::size_t written_ = 0;  ///< elements beyond have all bits 0
};

}  // namespace tandem::analysis
