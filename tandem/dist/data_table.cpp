// tandem/dist/data_table.cpp: the first place of data, and the ids of data.
#include "tandem/dist/data_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "tandem/dist/datum.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::dist {

using runtime::Handle;

DataTable::DataTable(std::uint32_t rank, std::uint32_t ranks) : rank_(rank), ranks_(ranks) {}
DataTable::~DataTable() = default;

void DataTable::add(Handle& handle, std::uint32_t owner, bool has_value) {
  if (owner != kEverywhere && owner >= ranks_)
    throw UsageError(fmt::format("{} is given to rank {}, but there are {} ranks", handle.described(), owner, ranks_));
  const std::uint64_t kind = handle.object != nullptr   ? std::uint64_t{1} << 63
                             : handle.layout != nullptr ? std::uint64_t{1} << 62
                                                        : 0;
  const std::uint32_t id = reserve(1, std::uint64_t{owner} << 32 ^ handle.travel_bytes() ^ kind);
  put(handle, owner, has_value, id);
}

std::uint32_t DataTable::reserve(std::size_t count, std::uint64_t digest) {
  if (count > UINT32_MAX - count_)
    throw UsageError(
        fmt::format("there cannot be {} more data: {} of at most {} have been registered", count, count_, UINT32_MAX));
  const auto first = static_cast<std::uint32_t>(count_);
  count_ += count;
  if (const std::size_t blocks = (count_ + kBlock - 1) / kBlock; blocks != blocks_.size()) {
    const std::lock_guard guard(mutex_);
    blocks_.resize(blocks);
  }
  digest_ = (digest_ ^ digest) * 0x9e3779b97f4a7c15ULL;
  return first;
}

void DataTable::add_reserved(Handle& handle, std::uint32_t owner, std::uint32_t id) { put(handle, owner, false, id); }

void DataTable::put(Handle& handle, std::uint32_t owner, bool has_value, std::uint32_t id) {
  Place& place = *new (handle.above.data()) Place;
  place.owner = place.holder = owner;
  place.unwritten = !has_value;
  place.in_users_memory = has_value;
  place.always_here = owner == rank_;
  place.id = id;
  handle.is_received = owner != kEverywhere && owner != rank_;
  handle.number = id;  // equal on all ranks, also if one of them has refused data that others have not
  const std::lock_guard guard(mutex_);
  std::unique_ptr<Block>& block = blocks_[id / kBlock];
  if (block == nullptr) block = std::make_unique<Block>();
  block->handles[id % kBlock] = &handle;
  ++block->live;
}

bool DataTable::contains(Handle& handle) const noexcept {
  return this->handle(place_of(handle).id) == &handle;
}

std::size_t DataTable::blocks() const noexcept {
  return static_cast<std::size_t>(std::count_if(blocks_.begin(), blocks_.end(),
                                                [](const auto& block) { return block != nullptr; }));
}

void DataTable::remove(Handle& handle) {
  const Place& place = place_of(handle);
  if (place.datum != nullptr) data_.erase(place.id);
  const std::lock_guard guard(mutex_);
  std::unique_ptr<Block>& block = blocks_[place.id / kBlock];
  block->handles[place.id % kBlock] = nullptr;
  if (--block->live == 0) block.reset();
}

bool DataTable::check_invariants() const {
  if (blocks_.size() != (count_ + kBlock - 1) / kBlock) return false;
  std::size_t travelled = 0;
  for (std::size_t number = 0; number < blocks_.size(); ++number) {
    if (blocks_[number] == nullptr) continue;
    std::size_t live = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      Handle* const handle = blocks_[number]->handles[i];
      if (handle == nullptr) continue;
      ++live;
      const Place& place = place_of(*handle);
      if (place.id != number * kBlock + i || place.id >= count_ || handle->number != place.id) return false;
      if (place.owner != kEverywhere && (place.owner >= ranks_ || place.holder >= ranks_)) return false;
      if (place.datum == nullptr) continue;
      const auto known = data_.find(place.id);
      if (known == data_.end() || known->second.get() != place.datum || &place.datum->handle != handle) return false;
      ++travelled;
    }
    if (live == 0 || live != blocks_[number]->live) return false;
  }
  return travelled == data_.size();
}

Datum& DataTable::datum_of(Handle& handle) {
  Place& place = place_of(handle);
  if (place.datum == nullptr) {
    auto& datum = data_[place.id];
    datum = std::make_unique<Datum>(handle);
    place.datum = datum.get();
  }
  return *place.datum;
}

Datum* DataTable::find(std::uint32_t id) {
  const auto at = data_.find(id);
  return at != data_.end() ? at->second.get() : nullptr;
}

}  // namespace tandem::dist
