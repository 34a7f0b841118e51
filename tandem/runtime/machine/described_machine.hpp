// tandem/runtime/machine/described_machine.hpp: the figures of a machine that somebody described, for the one that was found.
#pragma once

#include <string>

#include "tandem/runtime/machine/machine.hpp"

namespace tandem::runtime {

/// What tells the two apart: workers by number, kind and memory, memories by number and kind, and NUMA nodes. "it has 4 workers of kind cpu, and this
/// program has 2"; empty: `described` may stand for `found`. Figures, names, cores and distances do not count.
std::string difference(const Machine& described, const Machine& found);

/// `found` gets the names of memories, the links, the networks and the powers of workers of `described`, from which it does not differ. What only `found`
/// knows stays.
void take_names_and_figures(Machine& found, const Machine& described);

}  // namespace tandem::runtime
