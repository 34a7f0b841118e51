// tandem/api/energy_counters.hpp: finds the energy counters of this machine for the workers of a program.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// A source of energy that cannot be counted.
struct MissingEnergy {
  std::string what;        ///< "packages of the processor", "cuda 0"
  std::string why;
  std::string remedy = {};  ///< advice; empty: nothing can be done
};

struct FoundEnergy {
  std::vector<runtime::EnergySource> sources;
  std::vector<MissingEnergy> missing;
};

/// Finds the counters that can be read: the processor's packages (RAPL) for the CPU workers, and NVIDIA's devices
/// (NVML) for those of CUDA. `ranks_here`: number of ranks of the job that share the processor; each counts its part of
/// the packages' energy.
FoundEnergy find_energy(const runtime::World& world, const base::Config& config, unsigned ranks_here);

/// Whether option `energy` allows counters and some option needs them: `stats`, `models`, `trace`, `report`, or
/// `objective`.
bool counts_energy(const base::Config& config);

/// Value of option `objective`.
runtime::Objective objective_of(const base::Config& config);

}  // namespace tandem
