// tandem/api/options.hpp: the options of a runtime, and where their values come from.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem {

/// Declares every option that a runtime reads: the one source of names, types, defaults and help.
void register_options(base::Registry& registry);

/// What a program sets itself. Such a value goes before the command line, the environment and tandem.toml.
struct Options {
  std::optional<unsigned> workers = {};                        ///< the calling thread is one of them
  std::optional<std::string> sched = {};                       ///< name of a scheduling policy
  std::vector<std::pair<std::string, std::string>> more = {};  ///< any other option: name without "tandem.", value as text
  /// Scheduling policies of the program's own, by name, to be chosen like the built-in ones.
  std::vector<std::pair<std::string, runtime::PolicyRegistry::Make>> policies = {};
  /// Tasks that take a modelled time instead of computing; see runtime::Emulation.
  runtime::Emulation emulation = {};
};

/// What the runtime proper needs of a configuration.
runtime::CoreOptions core_options(const base::Config& config);
/// What the flow of several ranks needs.
dist::FlowOptions flow_options(const base::Config& config);

}  // namespace tandem
