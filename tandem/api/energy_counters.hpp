// tandem/api/energy_counters.hpp: which counters of energy this machine has for the workers of a program.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// Something whose energy cannot be counted.
struct MissingEnergy {
  std::string what;        ///< "packages of the processor", "cuda 0"
  std::string why;
  std::string remedy = {};  ///< empty: nothing can be done
};

struct FoundEnergy {
  std::vector<runtime::EnergySource> sources;
  std::vector<MissingEnergy> missing;
};

/// The processor's packages (RAPL) for the CPU workers, and NVIDIA's devices (NVML) for those of CUDA, as far as they can be read. `ranks_here`: so many
/// ranks of the job share the processor, and each counts its part of the packages' energy.
FoundEnergy find_energy(const runtime::World& world, const base::Config& config, unsigned ranks_here);

/// Some option needs to know the energy: `stats`, `models`, `trace`, `report`, or `objective`; and option `energy` allows it.
bool counts_energy(const base::Config& config);

/// By option `objective`.
runtime::Objective objective_of(const base::Config& config);

}  // namespace tandem
