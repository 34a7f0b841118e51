// tandem/api/test_support.hpp: runtimes and logs for tests.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tandem/api/configure.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/runtime/worker/world.hpp"
#include "tandem/tandem.hpp"

namespace tandem::test {

/// Log lines of a runtime. Outlives it.
struct LogLines {
  std::mutex mutex;
  std::string text;
  /// Makes a log to these lines, or to nowhere.
  static std::unique_ptr<base::Log> log_to(LogLines* lines) {
    if (lines != nullptr) return lines->make_log();
    return std::make_unique<base::Log>(base::LogLevel::error, [](base::LogLevel, std::string_view) {});
  }
  std::unique_ptr<base::Log> make_log(base::LogLevel level = base::LogLevel::warn) {
    return std::make_unique<base::Log>(level, [this](base::LogLevel, std::string_view line) {
      std::lock_guard guard(mutex);
      text += std::string(line) + "\n";
    });
  }
  std::string all() {
    std::lock_guard guard(mutex);
    return text;
  }
};

/// Makes resources for a runtime without a log, or with a log to `lines`.
inline std::unique_ptr<WorldResources> test_resources(LogLines* lines = nullptr) {
  auto resources = std::make_unique<WorldResources>();
  resources->log = LogLines::log_to(lines);
  return resources;
}

/// Makes a configuration of `options`, defaults and two workers, independent of the environment and tandem.toml.
inline base::Config test_config(const Options& options) {
  base::Registry registry;
  register_options(registry);
  base::Config config(registry);
  const auto set = [&](const std::string& name, const std::string& value) {
    if (const auto done = config.set(name, value); !done.ok()) throw UsageError(done.error().message);
  };
  set("workers", std::to_string(options.workers.value_or(2)));
  if (options.sched) set("sched", *options.sched);
  for (const auto& [name, value] : options.more) set(name, value);
  return config;
}

/// Makes a runtime on one event loop, without a log.
inline std::unique_ptr<Runtime> loop_runtime(const TestWorldOptions& world_options = {},
                                             const runtime::CoreOptions& options = {}, LogLines* lines = nullptr) {
  auto resources = test_resources(lines);
  auto world = make_test_world(world_options, *resources);
  return std::make_unique<Runtime>(std::move(resources), std::move(world), options);
}

/// Makes a runtime on threads, without a log, or with a log to `lines`.
inline std::unique_ptr<Runtime> thread_runtime(const Options& options = {}, LogLines* lines = nullptr) {
  auto resources = test_resources(lines);
  const base::Config config = test_config(options);
  auto world = make_real_world(config, *resources);
  return std::make_unique<Runtime>(std::move(resources), std::move(world), core_options(config));
}

/// Text of the `Error` that `action` throws, or "nothing was thrown".
template <class Error>
std::string thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The present line as messages name it: "usage_error_test.cpp:LINE".
#define TANDEM_HERE \
  (std::string(__FILE__).substr(std::string(__FILE__).rfind('/') + 1) + ":" + std::to_string(__LINE__))

}  // namespace tandem::test
