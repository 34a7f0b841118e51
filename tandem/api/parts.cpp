// tandem/api/parts.cpp: splits data into its parts, and gathers them.
#include "tandem/api/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "tandem/api/part_copies.hpp"
#include "tandem/api/recorded_parts.hpp"
#include "tandem/api/runtime.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::internal {

namespace {

constexpr std::uint8_t kBeforeReads = 1;
constexpr std::uint8_t kBeforeWrites = 2;
/// Number of parts for whose accesses a task has room, beside that of the whole.
constexpr std::size_t kPartsPerTask =
    (runtime::kMaxTaskBytes - sizeof(runtime::Task)) / sizeof(runtime::AccessSlot) - 1;
static_assert(kPartsPerTask < 255);

template <class Extents>
std::size_t largest(const Extents& extents) {
  std::size_t count = 0;
  for (const auto& extent : extents) count = std::max(count, extent.count);
  return count;
}

}  // namespace

void prepare_parts(runtime::Handle& handle, bool writes) { PartPlan::prepare(handle, writes); }

PartPlan::Links& PartPlan::links_of(runtime::Handle& handle) {
  if (handle.division == nullptr) handle.division = std::make_shared<Links>();
  return *static_cast<Links*>(handle.division.get());
}

bool PartPlan::is_bound(const runtime::Handle& handle) noexcept {
  const auto* const links = static_cast<const Links*>(handle.division.get());
  return links != nullptr && (links->was_part || !links->plans.empty());
}

PartPlan::PartPlan(Runtime& rt, runtime::Handle& whole, Partition partition, const DividedKind& kind)
    : runtime_(rt), whole_(whole), partition_(std::move(partition)), kind_(kind), number_(rt.part_plans_++) {
  rt.check_division(whole, partition_.where);
  check_named();
  rows_ = cut(row_division());
  cols_ = cut(col_division());
  copies_ = rt.flow_->copies_parts(whole);
  if (copies_ && !rows_.empty() && !cols_.empty())
    rt.check_copies_fit(whole, largest(rows_) * largest(cols_) * whole.shape.element_bytes, partition_.where);
  for (std::size_t j = 0; j < cols_.size(); ++j)
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::string name =
          cols_.size() == 1 ? fmt::format("{}[{}]", whole.name, i) : fmt::format("{}[{},{}]", whole.name, i, j);
      runtime::Handle* const part =
          rt.add_part(!copies_, name, whole, {rows_[i].count, cols_[j].count, whole.shape.element_bytes},
                      {rows_[i].first, cols_[j].first}, kind.type, partition_.where);
      parts_.push_back(part);
      links_of(*part).part_of = this;
      links_of(*part).was_part = true;
      note_asks(*part);
    }
  links_of(whole).plans.push_back(this);
}

PartPlan::~PartPlan() {
  if (whole_.registry != nullptr && !runtime_.core().loop().is_in_child()) end();
  std::erase(links_of(whole_).plans, this);
  note_asks(whole_);
  for (runtime::Handle* const part : parts_) {
    links_of(*part).part_of = nullptr;
    note_asks(*part);
  }
}

/// Ends the partition, also while an exception leaves the scope, and behind the end of a flow, since the values of
/// parts are nowhere else. The runtime does not let this wait.
void PartPlan::end() noexcept {
  try {
    runtime_.flow_->orders_parts();  // behind the end of a flow all data goes home first
    note_for_recording();
    gather_now(true);
  } catch (const std::exception& error) {
    runtime_.core().log().error("at the end of the parts of {}: {}", whole_.described(), error.what());
    runtime_.flow_->forget_value(whole_);
  }
}

PartPlan::Division PartPlan::row_division() const noexcept {
  return {whole_.shape.rows,   partition_.rows,      partition_.row_parts,
          partition_.row_list, partition_.halo_rows, "rows"};
}

PartPlan::Division PartPlan::col_division() const noexcept {
  return {whole_.shape.cols,   partition_.cols,      partition_.col_parts,
          partition_.col_list, partition_.halo_cols, "columns"};
}

void PartPlan::check_named() const {
  const Division rows = row_division(), cols = col_division();
  if (!kind_.has_columns && (cols.is_named() || cols.halo != 0))
    refuse("it is a vector, which has no columns to divide; its elements are rows: give .rows, .row_parts or "
           ".row_list");
  if (!rows.is_named() && !cols.is_named())
    refuse("the partition does not say how; 0 stands for nothing: give .rows, .row_parts or .row_list, or for a matrix "
           "those of columns");
}

std::vector<std::size_t> PartPlan::counts_of(const Division& division) const {
  const auto& [size, of_each, parts, list, halo, what] = division;
  if ((of_each != 0) + (parts != 0) + !list.empty() > 1)
    refuse(fmt::format("the {} of a part are given twice; give one of their number, a list, and the number of parts",
                       what));
  if (std::ranges::find(list, std::size_t{0}) != list.end()) refuse(fmt::format("the list gives a part no {}", what));
  if (parts > size) refuse(fmt::format("there are {} {}, too few for {} parts", size, what, parts));
  std::size_t left = size;
  for (const std::size_t count : list) {
    if (count > left) refuse(fmt::format("the {} of the list add up to more than there are: {}", what, size));
    left -= count;
  }
  if (!list.empty() && left != 0)
    refuse(fmt::format("the {} of the list add up to {}, but there are {}", what, size - left, size));
  std::vector<std::size_t> counts = list;
  for (std::size_t part = 0; part < parts; ++part) counts.push_back(size / parts + (part < size % parts ? 1 : 0));
  if (counts.empty() && of_each == 0 && size != 0) counts.push_back(size);
  if (of_each != 0)
    for (std::size_t first = 0; first < size; first += counts.back()) counts.push_back(std::min(of_each, size - first));
  return counts;
}

std::vector<PartPlan::Extent> PartPlan::cut(const Division& division) const {
  const std::vector<std::size_t> counts = counts_of(division);
  const std::size_t halo = division.halo;
  std::vector<Extent> extents;
  for (std::size_t first = 0; const std::size_t count : counts) {
    if (counts.size() > 1 && count < halo)
      refuse(fmt::format("part {} has {} {}, fewer than the halo of {}, so that its neighbours' halos would lack some; "
                         "make larger parts, or a smaller halo",
                         extents.size(), count, division.what, halo));
    const std::size_t before = std::min(halo, first), after = std::min(halo, division.size - first - count);
    extents.push_back({first - before, before + count + after, first, count});
    first += count;
  }
  return extents;
}

PartCore PartPlan::core(std::size_t index) const noexcept {
  const Extent& rows = rows_[index % rows_.size()];
  const Extent& cols = cols_[index / rows_.size()];
  return {rows.core_first - rows.first, cols.core_first - cols.first, rows.core_count,
          cols.core_count,              rows.core_first,              cols.core_first};
}

std::size_t PartPlan::index(std::size_t i, std::size_t j) const {
  if (i < rows_.size() && j < cols_.size()) return i + j * rows_.size();
  throw UsageError(
      fmt::format("{} has no part ({}, {}): there are {} x {}", whole_.described(), i, j, rows_.size(), cols_.size()));
}

void PartPlan::refuse(const std::string& why) const {
  throw UsageError(
      fmt::format("cannot divide {} (at {}): {}", whole_.described(), runtime::describe(partition_.where), why));
}

void PartPlan::prepare(runtime::Handle& handle, bool writes) {
  const Links& links = links_of(handle);
  if (links.was_part && links.part_of == nullptr)
    throw UsageError(fmt::format("cannot use {}: the partition that it was a part of has ended", handle.described()));
  if (links.part_of != nullptr) links.part_of->split(writes);
  for (PartPlan* const plan : links.plans)
    if (plan->state_ == State::writing || (writes && plan->state_ == State::reading)) plan->gather();
}

void PartPlan::note_for_recording() {
  if (runtime_.recorded_parts_ != nullptr) runtime_.recorded_parts_->note(*this);
}

void PartPlan::split(bool writes) {
  note_for_recording();
  if (state_ == State::writing || (state_ == State::reading && !writes)) return;
  const bool has_copies = copies_ && state_ == State::reading;  // copies of the value that the whole has
  if (writes && kind_.is_constant)
    throw UsageError(fmt::format("cannot write parts of {}: it is constant", whole_.described()));
  if (writes && (partition_.halo_rows != 0 || partition_.halo_cols != 0))
    throw UsageError(
        fmt::format("cannot write parts of {} that have a halo: they overlap; write parts of another partition",
                    whole_.described()));
  prepare(whole_, writes);
  if (!runtime_.flow_->orders_parts()) return;
  if (!has_copies) {
    if (copies_) copy_to_parts(writes);
    else order_split(writes);
  }
  set(writes ? State::writing : State::reading);
}

void PartPlan::gather() {
  note_for_recording();
  if (state_ != State::idle && runtime_.flow_->orders_parts()) gather_now(false);
}

/// Gathers; `at_end`: nothing here waits for room in the window.
void PartPlan::gather_now(bool at_end) {
  if (state_ == State::idle) return;
  if (state_ == State::writing && runtime_.flow_->is_recording() && lacks_value())
    throw UsageError(
        fmt::format("cannot gather {} in a recording (parts made at {}): some of its parts have no value, and a replay "
                    "would lose what they "
                    "have; write all of them, or the whole before it is divided",
                    whole_.described(), runtime::describe(partition_.where)));
  for (runtime::Handle* const part : parts_)
    for (PartPlan* const inner : links_of(*part).plans) {
      inner->note_for_recording();
      inner->gather_now(at_end);
    }
  if (!copies_) order_gather(at_end);
  else if (state_ == State::writing) copy_to_whole(at_end);
  set(State::idle);
}

/// Submits the tasks after which others may use the parts, which get a value only if there is one. Without one there is
/// nothing to order, except where operations are counted or repeated.
void PartPlan::order_split(bool writes) {
  const bool has_value = runtime_.flow_->has_value(whole_);
  if (has_value || !writes || runtime_.flow_->orders_without_value())
    for (std::size_t first = 0; first < parts_.size(); first += kPartsPerTask) {
      const std::size_t last = std::min(first + kPartsPerTask, parts_.size());
      std::vector<dist::Use> uses{{&whole_, !writes     ? AccessMode::read
                                            : has_value ? AccessMode::read_write
                                                        : AccessMode::write}};
      for (std::size_t i = first; i < last; ++i) uses.push_back({parts_[i], AccessMode::write});
      submit({.splits = true, .uses = uses, .where = partition_.where, .may_wait = first == 0});
    }
  if (!has_value)
    for (runtime::Handle* const part : parts_) runtime_.flow_->forget_value(*part);
}

/// Submits the tasks after which others may use the whole. Written parts make up all of it, whatever happened to its
/// own value.
void PartPlan::order_gather(bool at_end) {
  const bool writes = state_ == State::writing;
  bool any = !writes;  // some part has a value
  bool is_written = false, is_ordered = false;
  for (std::size_t first = 0; first < parts_.size(); first += kPartsPerTask) {
    std::vector<dist::Use> uses;
    const std::size_t last = std::min(first + kPartsPerTask, parts_.size());
    for (std::size_t i = first; i < last; ++i) {
      const bool has_part = runtime_.flow_->has_value(*parts_[i]);
      any = any || has_part;
      if (has_part) uses.push_back({parts_[i], AccessMode::read_write});
      else if (runtime_.flow_->orders_without_value()) uses.push_back({parts_[i], AccessMode::write});
    }
    if (uses.empty()) continue;
    uses.push_back({&whole_, !writes                            ? AccessMode::read
                             : std::exchange(is_written, true) ? AccessMode::read_write
                                                               : AccessMode::write});
    submit({.splits = false, .uses = uses, .where = partition_.where, .may_wait = !at_end && !std::exchange(is_ordered, true)});
  }
  if (!any) runtime_.flow_->forget_value(whole_);
}

/// As `order_split`, with a copy for each part.
void PartPlan::copy_to_parts(bool writes) {
  const bool has_value = runtime_.flow_->has_value(whole_);
  for (std::size_t i = 0; (has_value || !writes) && i < parts_.size(); ++i) {
    dist::Use uses[] = {{&whole_, AccessMode::read}, {parts_[i], AccessMode::write}};
    submit({.splits = true, .uses = uses, .where = partition_.where, .copied = place_of(i), .may_wait = i == 0});
  }
  if (writes) note_out_of_date(whole_);
  if (!has_value)
    for (runtime::Handle* const part : parts_) runtime_.flow_->forget_value(*part);
}

/// As `order_gather`, with a copy for each part. Parts that were only read need none: a later writer of the whole waits
/// only for the copies.
void PartPlan::copy_to_whole(bool at_end) {
  bool is_written = false;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!runtime_.flow_->has_value(*parts_[i])) continue;
    // The first piece of the whole replaces the old value.
    const AccessMode changes = std::exchange(is_written, true) ? AccessMode::read_write : AccessMode::write;
    dist::Use uses[] = {{parts_[i], AccessMode::read}, {&whole_, changes}};
    submit({.splits = false, .uses = uses, .where = partition_.where, .copied = place_of(i),
            .may_wait = !at_end && changes == AccessMode::write});
    note_out_of_date(*parts_[i]);
  }
  if (!is_written) runtime_.flow_->forget_value(whole_);
}

/// Marks data as out of date, so that it leaves main memory before other data.
void PartPlan::note_out_of_date(runtime::Handle& handle) {
  if (!runtime_.flow_->is_recording()) runtime_.core().memory().note_unwanted(handle, false);
}

PlaceInWhole PartPlan::place_of(std::size_t part) const noexcept {
  return {rows_[part % rows_.size()].first, cols_[part / rows_.size()].first};
}

/// Submits an order, whose data may be used, whatever `asks` says.
void PartPlan::submit(const PartOrder& order) {
  for (const dist::Use& use : order.uses) use.handle->flow.asks = 0;
  try {
    runtime_.order_parts(order);
  } catch (...) {
    set(state_);
    throw;
  }
}

bool PartPlan::lacks_value() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [this](runtime::Handle* part) { return !runtime_.flow_->has_value(*part); });
}

void PartPlan::set(State state) {
  state_ = state;
  note_asks(whole_);
  for (runtime::Handle* const part : parts_) note_asks(*part);
}

void PartPlan::note_asks(runtime::Handle& handle) {
  const Links& links = links_of(handle);
  std::uint8_t asks = 0;
  if (links.was_part) {
    const State state = links.part_of != nullptr ? links.part_of->state_ : State::idle;
    asks |= state == State::idle ? kBeforeReads | kBeforeWrites : state == State::reading ? kBeforeWrites : 0;
  }
  for (const PartPlan* const plan : links.plans)
    asks |= plan->state_ == State::writing   ? kBeforeReads | kBeforeWrites
            : plan->state_ == State::reading ? kBeforeWrites
                                             : 0;
  handle.flow.asks = asks;
}

}  // namespace tandem::internal
