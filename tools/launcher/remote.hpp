// tools/launcher/remote.hpp: ranks on another host, behind ssh and an agent there.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"
#include "tandem/comm/bootstrap/socket.hpp"
#include "tools/launcher/group.hpp"
#include "tools/launcher/cleanup.hpp"
#include "tools/launcher/wire.hpp"

namespace tandem::tools {

/// How a host is reached.
struct RemotePlace {
  std::string host;
  std::vector<std::string> ssh;  ///< the program and its arguments before the host's name
  std::string tandem;            ///< the command on that host
  bool by_shell = true;  ///< the program hands one line to a shell there, as ssh does; false: words to a program
};

/// One ssh per host, whatever the number of its ranks. Lines that ssh itself or a login script writes are passed on as
/// "[host] text". `events` and `cleanup` outlive it; destroying it ends ssh, and with it the ranks.
class RemoteRanks final : public RankGroup {
 public:
  /// Starts ssh and returns. `GroupEvents::failed` reports an unreachable host later. Errors: as spawn().
  static base::Result<std::unique_ptr<RemoteRanks>> start(const GroupPlan& plan, const RemotePlace& place,
                                                          GroupEvents& events, CleanupProcess& cleanup);
  ~RemoteRanks() override;

  void collect(PollSet& polls, bool wants_output) override;
  void serve(const PollSet& polls) override;
  void signal(int number) override;
  bool is_over() const override { return running_.empty(); }
  void close_stream(Stream stream) override;
  bool wants_input() const override { return input_is_taken_; }
  void feed(std::string_view bytes) override;
  void end_input() override;

 private:
  RemoteRanks(std::string host, GroupEvents& events, CleanupProcess& cleanup)
      : host_(std::move(host)), events_(events), cleanup_(cleanup), frames_(wire::most_frame_bytes) {}
  base::Result<void> start_ssh(const GroupPlan& plan, const RemotePlace& place);
  void send(std::uint8_t kind, std::string_view body);
  void read_frames();
  bool find_greeting();
  void take(const comm::internal::Frame& frame);
  void read_complaints();
  void lose();

  const std::string host_;
  GroupEvents& events_;
  CleanupProcess& cleanup_;
  pid_t ssh_ = -1;
  base::FileDescriptor to_agent_, from_agent_, complaints_;
  std::string unsent_;
  std::string before_greeting_;
  bool greeted_ = false;
  comm::internal::FrameBuffer frames_;
  std::string complaint_;         ///< a line whose end has not come
  std::string last_complaint_;
  std::set<std::uint32_t> running_;
  bool input_is_taken_ = false;
  bool failed_ = false;           ///< the agent has sent the cause
};

}  // namespace tandem::tools
