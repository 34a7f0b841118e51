// tandem/runtime/worker/measure_links.hpp: measures the rates of copies to and from devices before the first task.
#pragma once

#include <cstddef>

#include "tandem/runtime/worker/world.hpp"

namespace tandem::runtime {

/// Gives the machine of `world` the links between main memory and the other memories in which workers work, and among
/// these as far as their copiers reach each other, in both directions. Known links stay as they are; links whose copies
/// fail or find no memory stay unknown.
///
/// Latency and rate follow from the shortest of some copies of 4 KiB, and of `bytes` bytes or a quarter of the memory's
/// budget, each after one that does not count. With 2 MiB that takes 2 to 20 ms for each link. Before the runtime
/// begins.
void measure_links(World& world, std::size_t bytes = std::size_t{2} << 20);

}  // namespace tandem::runtime
