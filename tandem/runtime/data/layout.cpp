// tandem/runtime/data/layout.cpp: packs strided arrays, and unpacks them.
#include "tandem/runtime/data/layout.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::runtime {

namespace {

/// Sorts dimensions by their strides; the first `count` entries of `dimensions` are sorted already.
void sort_by_stride(std::array<std::size_t, Layout::kMostDimensions>& dimensions, std::size_t count,
                    const std::array<std::size_t, Layout::kMostDimensions>& strides) noexcept {
  for (std::size_t i = 1; i < count; ++i)
    for (std::size_t j = i; j > 0 && strides[dimensions[j]] < strides[dimensions[j - 1]]; --j)
      std::swap(dimensions[j], dimensions[j - 1]);
}

}  // namespace

Layout::Layout(std::span<const std::size_t> extents, std::span<const std::size_t> strides,
               std::size_t element_bytes) noexcept
    : dimensions_(extents.size()), element_bytes_(element_bytes) {
  TANDEM_ASSERT(extents.size() <= kMostDimensions && strides.size() == extents.size());
  std::copy(extents.begin(), extents.end(), extents_.begin());
  std::copy(strides.begin(), strides.end(), strides_.begin());
  std::size_t span = 1;
  is_packed_ = true;
  for (std::size_t d = 0; d < dimensions_; ++d) {
    if (extents_[d] > 1 && strides_[d] != span) is_packed_ = false;
    span *= extents_[d];
  }
}

Layout Layout::packed() const noexcept {
  std::array<std::size_t, kMostDimensions> strides{};
  std::size_t span = 1;
  for (std::size_t d = 0; d < dimensions_; ++d) {
    strides[d] = span;
    span *= extents_[d];
  }
  return {extents(), {strides.data(), dimensions_}, element_bytes_};
}

std::size_t Layout::count() const noexcept {
  std::size_t count = 1;
  for (const std::size_t extent : extents()) count *= extent;
  return count;
}

bool Layout::is_sound() const noexcept {
  std::array<std::size_t, kMostDimensions> order{};
  for (std::size_t d = 0; d < dimensions_; ++d) order[d] = d;
  sort_by_stride(order, dimensions_, strides_);
  std::size_t reach = 0;  // the largest distance so far
  for (std::size_t i = 0; i < dimensions_; ++i) {
    if (extents_[order[i]] <= 1) continue;
    if (strides_[order[i]] <= reach) return false;
    reach += (extents_[order[i]] - 1) * strides_[order[i]];
  }
  return true;
}

bool Layout::is_within(std::size_t most) const noexcept {
  const auto all = extents();
  if (std::ranges::any_of(all, [most](std::size_t extent) { return extent > most; })) return false;
  if (std::ranges::find(all, std::size_t{0}) != all.end()) return true;
  most /= std::max<std::size_t>(element_bytes_, 1);
  std::size_t elements = 1, reach = 1;
  for (std::size_t d = 0; d < dimensions_; ++d) {
    if (extents_[d] > most / elements) return false;
    elements *= extents_[d];
    if (extents_[d] == 1) continue;
    if (strides_[d] > (most - reach) / (extents_[d] - 1)) return false;
    reach += (extents_[d] - 1) * strides_[d];
  }
  return true;
}

/// Calls `copy(bytes from the first element, packed bytes before it, bytes)` for each run of elements without gaps.
template <class Copy>
void Layout::for_each_run(const Copy& copy) const noexcept {
  if (count() == 0) return;
  std::size_t run = 1;
  std::size_t first = 0;  // the dimensions below it are one run
  for (; first < dimensions_ && (strides_[first] == run || extents_[first] == 1); ++first) run *= extents_[first];
  std::array<std::size_t, kMostDimensions> index{};
  std::size_t offset = 0;
  for (std::size_t at = 0;; at += run) {
    copy(offset * element_bytes_, at * element_bytes_, run * element_bytes_);
    std::size_t d = first;
    for (; d < dimensions_; ++d) {
      offset += strides_[d];
      if (++index[d] < extents_[d]) break;
      offset -= extents_[d] * strides_[d];
      index[d] = 0;
    }
    if (d == dimensions_) return;
  }
}

void Layout::pack(const void* from, void* to) const noexcept {
  for_each_run([&](std::size_t strided, std::size_t packed, std::size_t bytes) {
    std::memcpy(static_cast<char*>(to) + packed, static_cast<const char*>(from) + strided, bytes);
  });
}

void Layout::unpack(const void* from, void* to) const noexcept {
  for_each_run([&](std::size_t strided, std::size_t packed, std::size_t bytes) {
    std::memcpy(static_cast<char*>(to) + strided, static_cast<const char*>(from) + packed, bytes);
  });
}

Layout::Pieces Layout::pieces() const noexcept {
  std::array<std::size_t, kMostDimensions> order{};
  std::size_t used = 0;
  for (std::size_t d = 0; d < dimensions_; ++d)
    if (extents_[d] != 1) order[used++] = d;
  sort_by_stride(order, used, strides_);
  std::size_t elements = count() == 0 ? 0 : 1;
  std::size_t i = 0;
  for (; i < used && strides_[order[i]] == elements; ++i) elements *= extents_[order[i]];
  if (i == used || elements == 0) return {elements * element_bytes_};
  const std::size_t stride = strides_[order[i]];
  std::size_t pieces = extents_[order[i++]];
  for (; i < used && strides_[order[i]] == pieces * stride; ++i) pieces *= extents_[order[i]];
  if (i < used) return {elements * element_bytes_};
  return {elements * element_bytes_, pieces, stride * element_bytes_};
}

}  // namespace tandem::runtime
