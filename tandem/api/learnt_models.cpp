// tandem/api/learnt_models.cpp: between the files of models and the workers.
#include "tandem/api/learnt_models.hpp"

#include <utility>

#include "tandem/api/world.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem {

std::unique_ptr<LearntModels> LearntModels::start(const base::Config& config, const std::vector<runtime::WorkerSpec>& workers, const Options& options,
                                                  const WorldResources& resources) {
  std::optional<ModelFolder> folder;
  if (options.is_stored) {
    auto place = ModelFolder::place(config, base::process_environment());
    if (!place.ok()) throw StartError(place.error().message);
    // The program may change its folder until it ends.
    folder.emplace(std::filesystem::absolute(place.value()), machine_name(resources.topology != nullptr ? resources.topology->cpu_model() : std::string()));
  }
  return std::make_unique<LearntModels>(std::move(folder), workers, *resources.log);
}

LearntModels::LearntModels(std::optional<ModelFolder> folder, const std::vector<runtime::WorkerSpec>& workers, base::Log& log)
    : folder_(std::move(folder)), durations_(workers) {
  if (!folder_) return;
  const auto files = folder_->read_all();
  if (!files.ok()) {
    log.warn("performance models are not read: {}", files.error().message);
    return;
  }
  for (const ModelFolder::File& file : files.value()) {
    if (file.models.ok()) durations_.set(file.models.value());
    else log.warn("performance models: {}", file.models.error().message);
  }
}

void LearntModels::save(base::Log& log) {
  if (!folder_) return;
  const auto saved = folder_->save(durations_.news());
  if (!saved.ok()) return log.warn("performance models are not saved: {}", saved.error().message);
  for (const std::string& note : saved.value()) log.warn("performance models: {}", note);
}

}  // namespace tandem
