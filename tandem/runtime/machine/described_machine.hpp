// tandem/runtime/machine/described_machine.hpp: takes the figures of a described machine for the machine that was
// found.
#pragma once

#include <string>

#include "tandem/runtime/machine/machine.hpp"

namespace tandem::runtime {

/// First difference in workers (number, kind, memory), memories (number, kind) or NUMA nodes, as "it has 4 workers of
/// kind cpu, and this program has 2"; empty: `described` may stand for `found`. Figures, names, cores and distances do
/// not count.
std::string difference(const Machine& described, const Machine& found);

/// Copies the names of memories, the links, the networks and the powers of workers from `described`, which does not
/// differ from `found`, to `found`. Figures that only `found` knows stay.
void take_names_and_figures(Machine& found, const Machine& described);

}  // namespace tandem::runtime
