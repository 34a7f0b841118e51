// tandem/api/runtime_data.cpp: data and its parts: registration, owners, values, and where copies go.
#include "tandem/api/runtime.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "tandem/api/part_copies.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/main_memory_codelet.hpp"

namespace tandem {

void Runtime::check_options(const std::string& name, const DataOptions& options,
                            const runtime::ObjectOps* object) const {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("data '" + name + "' (at " + runtime::describe(options.where) + ") " + why);
  };
  if (options.owner && *options.owner >= size())
    refuse("is given to rank " + std::to_string(*options.owner) + ", but there are " + std::to_string(size()) +
           " ranks");
  if (options.bytes != 0 && object == nullptr) refuse("has the bytes of its shape; option bytes is for objects");
  if (options.bytes > runtime::kMostDataBytes)
    refuse("is said to take " + std::to_string(options.bytes) + " bytes, more than the " +
           std::to_string(runtime::kMostDataBytes) + " that one piece of data can have");
}

runtime::Handle* Runtime::add_data(std::string name, const runtime::Shape& shape,
                                   std::optional<runtime::Replica> memory, const std::type_info& type,
                                   const DataOptions& options, const runtime::ObjectOps* object,
                                   std::unique_ptr<const runtime::Layout> layout) {
  check_options(name, options, object);
  if (name.empty()) name = "data " + std::to_string(data_count_);
  ++data_count_;
  runtime::Replica home{nullptr, shape.rows};
  if (memory && (!options.owner || *options.owner == rank())) {
    // Empty data may have no address: it gets one, so that it is not taken for data that Tandem allocates.
    static char nothing;
    home = {memory->pointer == nullptr && shape.bytes() == 0 ? &nothing : memory->pointer, memory->ld};
    if (home.pointer == nullptr) home.ld = SIZE_MAX;
  }
  runtime::Handle* handle = core_->data().add(std::move(name), shape, home.pointer, home.ld, type, options.where,
                                              std::move(layout));
  handle->object = object;
  handle->typical_bytes = options.bytes != 0 ? options.bytes : shape.bytes();
  core_->memory().settle_home(*handle);
  flow_->add(*handle, options.owner.value_or(dist::kEverywhere), memory.has_value());
  if (options.owner) ++owned_data_;
  return handle;
}

void Runtime::check_division(runtime::Handle& whole, const SourceLine& where) {
  core_->submission().thread().check("divide data");
  core_->data().check_owned("divide", whole, where);
}

void Runtime::check_copies_fit(runtime::Handle& whole, std::size_t largest_part, const SourceLine& where) {
  runtime::Memory& memory = core_->memory();
  if (flow_->owner_of(whole) != rank() || !memory.is_limited(0)) return;
  const std::size_t bytes = largest_part + (runtime::Room::counts(whole, 0) ? whole.shape.bytes() : 0),
                    budget = memory.room().budget(0);
  if (bytes <= budget) return;
  throw OutOfMemory("cannot divide " + whole.described() + " (at " + runtime::describe(where) +
                    "): with option memory it is copied to its "
                    "parts one after the other, and with one of them takes " +
                    std::to_string(bytes) + " bytes in " + memory.described(0) + ", whose budget is " +
                    std::to_string(budget) +
                    " bytes; make smaller parts, register them as data of their own "
                    "(rt.tiles), or allow more memory (option memory)");
}

/// Adds a part. If the whole has memory that the part shares, the part begins there at row and column `first`. On other
/// ranks it has its own memory.
runtime::Handle* Runtime::add_part(bool shares, std::string name, runtime::Handle& whole, const runtime::Shape& shape,
                                   std::array<std::size_t, 2> first, const std::type_info& type,
                                   const std::source_location& where) {
  const DataOptions options = options_beside(&whole, where);
  const bool here = shares && flow_->owner_of(whole) == rank();
  if (here && !whole.home.has_memory() && shape.bytes() != 0) core_->memory().allocate_home(whole);
  runtime::Handle* const part = add_data(std::move(name), shape, {}, type, options, nullptr);
  if (!here || shape.bytes() == 0) return part;
  part->home = {
      static_cast<std::byte*>(whole.home.pointer) + (first[0] + first[1] * whole.home.ld) * shape.element_bytes,
      whole.home.ld, false};
  part->is_part = whole.has_parts = true;
  return part;
}

void Runtime::order_parts(const internal::PartOrder& order) {
  static const runtime::TaskOps only_orders{.invoke = [](runtime::KernelCall&) {}, .always = true, .serves = true};
  static const std::shared_ptr<runtime::CodeletCore> split = runtime::make_main_memory_codelet("split");
  static const std::shared_ptr<runtime::CodeletCore> gather = runtime::make_main_memory_codelet("gather");
  const std::shared_ptr<runtime::CodeletCore>& codelet = order.splits ? split : gather;
  const runtime::TaskOps& ops = order.copied ? internal::part_copy_ops(order.splits) : only_orders;
  runtime::Submission& submission = core_->submission();
  submission.thread().check("submit");
  if (order.may_wait && !flow_->is_recording()) submission.make_room();
  submission.adopt(codelet);
  dist::Wish wish{.where = order.where, .codelet = codelet.get()};
  if (runtime::Handle& first = *order.uses.front().handle; flow_->has_owner(first)) wish.on = flow_->owner_of(first);
  if (!flow_->begin_task(order.uses, wish, false)) return;
  runtime::Task& task = submission.begin(codelet, ops, base::narrow<unsigned>(order.uses.size()));
  task.where = order.where;
  for (std::size_t i = 0; i < order.uses.size(); ++i) task.accesses()[i].set(order.uses[i].handle, order.uses[i].mode);
  if (order.copied) new (task.values()) internal::PlaceInWhole(*order.copied);
  if (flow_->is_recording()) submission.keep_iteration(task);
  flow_->submit(task, order.uses, wish);
}

std::uint32_t Runtime::reserve_tiles(const internal::TileRegistry& tiles, std::size_t element_bytes) {
  const TileGrid& grid = tiles.grid();
  const std::size_t count = tiles.row_tiles() * tiles.col_tiles();
  const std::uint32_t first = flow_->reserve(count, [&] {
    core_->submission().thread().check("register data");
    // All ranks must agree on the owners, so each asks for all of them.
    std::uint64_t digest = 0;
    const auto mix = [&digest](std::uint64_t value) { digest = (digest ^ value) * 0x9e3779b97f4a7c15ULL; };
    for (const std::size_t value : {grid.rows, grid.cols, grid.tile_rows, grid.tile_cols, element_bytes}) mix(value);
    for (std::size_t j = 0; grid.owner && j < tiles.col_tiles(); ++j)
      for (std::size_t i = 0; i < tiles.row_tiles(); ++i) {
        const std::uint32_t owner = grid.owner(i, j);
        if (owner >= size())
          throw UsageError("tile (" + std::to_string(i) + "," + std::to_string(j) + ") of '" + tiles.name() + "' (at " +
                           runtime::describe(grid.where) + ") is given to rank " + std::to_string(owner) +
                           ", but there are " + std::to_string(size()) + " ranks");
        mix(owner);
      }
    return digest;
  });
  if (grid.owner) owned_data_ += count;
  return first;
}

runtime::Handle* Runtime::allocate_tile(std::string name, const runtime::Shape& shape, const std::type_info& type,
                                        const DataOptions& options, std::uint32_t number) {
  check_options(name, options, nullptr);
  runtime::Handle* handle = core_->data().add(std::move(name), shape, nullptr, shape.rows, type, options.where);
  handle->typical_bytes = shape.bytes();
  flow_->add_reserved(*handle, options.owner.value_or(dist::kEverywhere), number);
  return handle;
}

/// Sends what the application sees to every rank; it writes only data that each rank has separately.
void Runtime::share_access(runtime::Handle& handle, AccessMode mode, const SourceLine& where) {
  if (!flow_->has_owner(handle)) return;
  if (mode != AccessMode::read)
    throw UsageError("cannot acquire " + handle.described() + " with mode " + std::string(name_of(mode)) +
                     " on every rank, since rank " + std::to_string(flow_->owner_of(handle)) +
                     " owns it; use acquire_at_owner");
  dist::Use use{&handle, mode};
  flow_->enter({&use, 1}, {.on = dist::kEverywhere, .where = where, .is_task = false});
}

/// In a cancelled flow no data travels any more, and parts are not gathered on several ranks: the application gets the
/// local value, if other ranks' copies stay valid.
void Runtime::check_access_behind_end(runtime::Handle& handle, AccessMode mode) {
  check_divided_behind_end(handle, mode);
  const bool is_here =
      !flow_->has_owner(handle) || (flow_->owner_of(handle) == rank() && mode == AccessMode::read);
  if (!is_here || (mode != AccessMode::write && !handle.flow.has_value))
    throw FlowCancelled("cannot acquire " + handle.described() + " with mode " + std::string(name_of(mode)) +
                        ": the flow was cancelled; wait first");
}

/// The value is in the parts, or in the whole, whose order is restored after the next wait.
void Runtime::check_divided_behind_end(const runtime::Handle& handle, AccessMode mode) {
  if ((handle.flow.asks & (mode == AccessMode::read ? 1U : 2U)) == 0 || flow_->orders_parts()) return;
  throw FlowCancelled("cannot use " + handle.described() + " with mode " + std::string(name_of(mode)) +
                      ": it is divided into parts, or is one, and the flow was cancelled before it was split or "
                      "gathered; wait first");
}

/// The flow, for an explicit message.
dist::Flow& Runtime::own_flow(const char* action, runtime::Handle* handle) {
  core_->submission().thread().check(action);
  runtime::Handle& data = named(handle, action);
  if (several_ == nullptr)
    throw UsageError(std::string("cannot ") + action + " " + data.described() + ": there is one rank only");
  if (flow_->has_owner(data))
    throw UsageError(std::string("cannot ") + action + " " + data.described() + " explicitly, since rank " +
                     std::to_string(flow_->owner_of(data)) +
                     " owns it: what tasks need travels by itself; send data without an owner");
  return *several_;
}

DataOptions Runtime::options_beside(runtime::Handle* handle, const std::source_location& where) {
  DataOptions options{.where = where};
  if (several_ != nullptr && flow_->has_owner(named(handle, "lay data beside")))
    options.owner = flow_->owner_of(*handle);
  return options;
}

void Runtime::fetch_to(runtime::Handle* handle, std::optional<std::uint32_t> rank, const SourceLine& where) {
  core_->submission().thread().check("fetch data");
  internal::about_to_use(handle, false);
  flow_->fetch(handle, rank.value_or(dist::kEverywhere), where);
}

void Runtime::migrate_to(runtime::Handle* handle, std::uint32_t rank, const SourceLine& where) {
  core_->submission().thread().check("migrate data");
  if (handle != nullptr && internal::PartPlan::is_bound(*handle))
    throw UsageError("cannot migrate " + handle->described() + ": it has parts, or is a part; let the parts end first");
  flow_->migrate(handle, rank, where);
}

void Runtime::flush_copies(runtime::Handle* handle) {
  core_->submission().thread().check("flush data");
  flow_->flush(handle);
}

std::vector<MemoryNodeDescription> Runtime::memory_nodes() const {
  runtime::Memory& memory = core_->memory();
  std::vector<MemoryNodeDescription> nodes(memory.node_count());
  for (unsigned node = 0; node < nodes.size(); ++node) {
    nodes[node].name = core_->world().machine.nodes[node].name;
    if (memory.is_limited(node)) nodes[node].budget = memory.room().budget(node);
    nodes[node].is_storage = memory.room().is_storage(node);
  }
  const auto& workers = core_->world().machine.workers;
  for (unsigned worker = 0; worker < workers.size(); ++worker) nodes[workers[worker].node].workers.push_back(worker);
  return nodes;
}

void Runtime::check_node(const char* action, unsigned node) const {
  const runtime::Memory& memory = core_->memory();
  if (node >= memory.node_count())
    throw UsageError("cannot " + std::string(action) + " data on memory node " + std::to_string(node) + ": there are " +
                     std::to_string(memory.node_count()) + ", from 0; rt.memory_nodes() lists them");
  if (core_->memory().room().is_storage(node))
    throw UsageError("cannot " + std::string(action) + " data on memory node " + std::to_string(node) +
                     ", which is a file for what main memory has no room for");
}

void Runtime::prefetch_to(runtime::Handle* handle, unsigned node, const SourceLine& where) {
  runtime::Handle& data = named(handle, "prefetch");
  check_node("prefetch", node);
  if (is_over()) return;
  if (!flow_->has_spare_id()) return core_->memory().note_ignored_prefetch();
  core_->accesses().prefetch(data, node, where);
}

void Runtime::release_memory_of(runtime::Handle* handle, bool now) {
  core_->submission().thread().check("release memory of data");
  core_->memory().note_unwanted(named(handle, "release memory of"), now);
}

void Runtime::send_to(runtime::Handle* handle, std::uint32_t to, std::uint64_t tag, int priority) {
  internal::about_to_use(handle, false);
  own_flow("send", handle).send(*handle, to, tag, priority);
  ownerless_warning_due_ = false;
}

void Runtime::receive_from(runtime::Handle* handle, std::uint32_t from, std::uint64_t tag) {
  internal::about_to_use(handle, true);
  own_flow("receive", handle).receive(*handle, from, tag);
  ownerless_warning_due_ = false;
}

}  // namespace tandem
