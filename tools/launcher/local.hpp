// tools/launcher/local.hpp: ranks that are processes of this host.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/socket.hpp"
#include "tools/launcher/group.hpp"
#include "tools/launcher/cleanup.hpp"

namespace tandem::tools {

/// Processes, each the leader of a process group, with two pipes each. When a rank's own process ends, what it left
/// running in its group is killed before it is reaped, while no other process can have its number. `events` and
/// `cleanup` outlive it; destroying it kills what runs.
class LocalRanks final : public RankGroup {
 public:
  /// Starts all ranks of the plan. Errors: as for spawn(); ranks that were started before are killed.
  static base::Result<std::unique_ptr<LocalRanks>> start(const GroupPlan& plan, GroupEvents& events,
                                                         CleanupProcess& cleanup);
  ~LocalRanks() override;

  void collect(PollSet& polls, bool wants_output) override;
  void serve(const PollSet& polls) override;
  void signal(int number) override;
  bool is_over() const override { return processes_.empty(); }
  void close_stream(Stream stream) override;
  bool wants_input() const override { return bool(input_) && unfed_.empty(); }
  void feed(std::string_view bytes) override;
  void end_input() override;

 private:
  struct Process {
    pid_t pid = -1;
    base::FileDescriptor end;  ///< readable when the process has ended
    base::FileDescriptor output, errors;
  };
  using Processes = std::map<std::uint32_t, Process>;  ///< by rank

  LocalRanks(GroupEvents& events, CleanupProcess& cleanup) : events_(events), cleanup_(cleanup) {}
  base::Result<void> start_one(const GroupPlan& plan, std::uint32_t rank, const std::vector<unsigned>& cores,
                               int secret);
  void read_some(std::uint32_t rank, base::FileDescriptor& pipe, Stream stream, bool to_the_end);
  int finish(std::uint32_t rank, Process& process);
  void write_input();

  GroupEvents& events_;
  CleanupProcess& cleanup_;
  Processes processes_;
  base::FileDescriptor input_;  ///< of the first rank
  std::string unfed_;
  bool input_ends_ = false;           ///< after `unfed_`
  const std::filesystem::file_time_type begun_ = std::filesystem::file_time_type::clock::now();
};

}  // namespace tandem::tools
