// tandem/api/part_copies.cpp: kernels that copy between a whole and its parts.
#include "tandem/api/part_copies.hpp"

#include <new>
#include <typeinfo>

#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::internal {

namespace {

template <bool splits>
void copy_piece(runtime::KernelCall& call) {
  const auto& first = *static_cast<const PlaceInWhole*>(call.task.values());
  const runtime::Shape& piece = call.shape(splits ? 1 : 0);
  const auto memory = [&](unsigned access, bool is_whole) {
    runtime::Replica replica = call.memory(access);
    if (is_whole)
      replica.pointer =
          static_cast<std::byte*>(replica.pointer) + (first.row + first.col * replica.ld) * piece.element_bytes;
    return replica;
  };
  const runtime::Replica from = memory(0, splits), to = memory(1, !splits);
  runtime::copy_matrix({.from = from.pointer, .to = to.pointer, .from_ld = from.ld, .to_ld = to.ld, .shape = piece});
}

void copy_values(runtime::Task& from, runtime::Task& to, bool) {
  new (to.values()) PlaceInWhole(*static_cast<const PlaceInWhole*>(from.values()));
}

template <bool splits>
constexpr runtime::TaskOps kOps{.invoke = &copy_piece<splits>,
                                .copy_values = &copy_values,
                                .always = true,
                                .value_types = &typeid(PlaceInWhole),
                                .value_bytes = sizeof(PlaceInWhole),
                                .value_alignment = alignof(PlaceInWhole),
                                .serves = true};

}  // namespace

const runtime::TaskOps& part_copy_ops(bool splits) noexcept { return splits ? kOps<true> : kOps<false>; }

}  // namespace tandem::internal
