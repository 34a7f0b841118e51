// tandem/api/options.hpp: the options of a runtime, and where their values come from.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/device/emulation.hpp"

namespace tandem::runtime {
class Policy;
struct DeviceUnit;
}  // namespace tandem::runtime

namespace tandem {

/// Values that a program sets itself. Such a value takes precedence over the command line, the environment and
/// tandem.toml.
struct Options {
  std::optional<unsigned> workers = {};                        ///< the calling thread is one of them
  std::optional<std::string> sched = {};                       ///< name of a scheduling policy
  /// Any other option: name without "tandem.", value as text.
  std::vector<std::pair<std::string, std::string>> more = {};
  /// Scheduling policies of the program, by name. Option `sched` chooses them like the built-in ones.
  /// tandem/scheduling.hpp says how to write one.
  std::vector<std::pair<std::string, std::function<std::unique_ptr<runtime::Policy>()>>> policies = {};
  /// Devices of the program, each with a worker of its own, beside those that Tandem knows. Called once, when the
  /// runtime starts. tandem/device.hpp says how to write one.
  std::vector<std::function<runtime::DeviceUnit()>> devices = {};
  /// Tasks that take a modelled time instead of computing; see runtime::Emulation.
  runtime::Emulation emulation = {};
};

}  // namespace tandem
