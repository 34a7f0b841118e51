// tools/launcher/group.hpp: the launcher's view of some ranks of a job that run in one place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/core_plan.hpp"
#include "tools/launcher/poll.hpp"

namespace tandem::tools {

/// Standard input of a rank. The launcher reads no more of its own than it feeds.
enum class Input : std::uint8_t {
  none,      ///< /dev/null
  fed,       ///< a pipe, which `RankGroup::feed` fills
  inherited  ///< the launcher's own, for a rank on its host; only the rank reads it
};

/// The ranks of a group and their arguments, for a group on this host and for one behind ssh.
struct GroupPlan {
  std::vector<std::string> words;  ///< the program and its arguments
  std::string folder;              ///< where the ranks start; empty: here
  std::vector<std::pair<std::string, std::string>>
      environment;  ///< added to that of the place, or instead of values there
  std::uint32_t first_rank = 0;
  std::uint32_t count = 0;
  std::uint32_t size = 0;          ///< ranks of the whole job
  /// The first rank's number among those of its host, where other groups may have ranks, too.
  std::uint32_t first_local = 0;
  std::uint32_t local_size = 0;    ///< ranks of the job on that host
  std::string job_id;
  std::string server;              ///< HOST:PORT,... of the rendezvous, as seen from there
  std::string secret;              ///< its text
  bool secret_in_environment = false;
  std::string here;                ///< all ranks of the job on that host, as in "0-1,4-5"
  base::BindTo bind = base::BindTo::none;  ///< what each rank's process is bound to
  base::MapBy map = base::MapBy::core;     ///< in which order ranks take their shares of the cores
  Input input = Input::none;       ///< of the first rank of the group; the others have none
};

enum class Stream : std::uint8_t { output, errors };

/// Called by a group, from inside its `serve` only.
class GroupEvents {
 public:
  virtual ~GroupEvents() = default;
  virtual void output(std::uint32_t rank, Stream stream, std::string_view bytes) = 0;
  /// A rank has ended with `wait_status` of wait(). Everything that the rank wrote was passed to `output` before.
  virtual void ended(std::uint32_t rank, int wait_status) = 0;
  /// Ranks of the group that have not ended are lost, or never began: the reason, and a shell's exit code.
  virtual void failed(const std::string& reason, int exit_code) = 0;
};

/// The owner of a group calls `collect` before it waits and `serve` after. Nothing blocks. Not thread-safe.
class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual void collect(PollSet& polls, bool wants_output) = 0;
  virtual void serve(const PollSet& polls) = 0;
  /// Sends a signal to the process group of each rank that runs.
  virtual void signal(int number) = 0;
  /// Whether no rank runs any more, and everything was reported.
  virtual bool is_over() const = 0;
  /// Closes a stream without a reader, so that the ranks notice that.
  virtual void close_stream(Stream stream) = 0;

  /// Whether `feed` may be called: the last bytes were taken.
  virtual bool wants_input() const = 0;
  virtual void feed(std::string_view bytes) = 0;
  virtual void end_input() = 0;
};

}  // namespace tandem::tools
