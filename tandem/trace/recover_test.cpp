// tandem/trace/recover_test.cpp: live buffers in every state, and the folders of ranks that were killed.
#include "tandem/trace/recover.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "tandem/base/host.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/sample_trace.hpp"

namespace tandem::trace::recover_test {
namespace {

using test::PacketWriter;

constexpr std::size_t buffer_bytes = 1024;

class Memory : public test::AlignedBytes {
 public:
  using AlignedBytes::AlignedBytes;
  std::vector<LivePacket> packets() const { return collect_live(bytes()); }
};
Memory memory_of(const std::vector<std::string>& buffers) {
  return Memory(test::live_file("/run", 1, buffer_bytes, buffers));
}

PacketWriter two_events(std::uint32_t actor = 1, std::uint64_t sequence = 0, std::uint64_t ticks = 2'000'000) {
  PacketWriter packet(actor, sequence, ticks);
  packet.add(Type::task_started, ticks + 1, {7}).add(Type::task_ended, ticks + 9, {7});
  return packet;
}

std::uint32_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return static_cast<std::uint32_t>(child);
}

TEST(CollectLive, TakesACompleteBufferAsItIs) {
  const Memory memory = memory_of({two_events().live_complete(buffer_bytes)});
  const auto packets = memory.packets();
  ASSERT_EQ(packets.size(), 1u);
  const PacketHeader expected = two_events().header();
  EXPECT_EQ(std::memcmp(&packets[0].header, &expected, sizeof expected), 0);
  EXPECT_EQ(packets[0].content_bytes(), 16u);
}

TEST(CollectLive, EndsAnUnfinishedBufferBehindItsLastRecord) {
  const Memory memory = memory_of({two_events().live_unfinished(buffer_bytes)});
  const auto packets = memory.packets();
  ASSERT_EQ(packets.size(), 1u);
  const PacketHeader expected = two_events().header();
  EXPECT_EQ(std::memcmp(&packets[0].header, &expected, sizeof expected), 0);
}

TEST(CollectLive, LeavesOutARecordWhoseHeaderIsNotThereYetThoughItsFieldsAre) {
  std::string buffer = two_events().live_unfinished(buffer_bytes);
  std::fill_n(buffer.begin() + 64 + 8, 4, '\0');
  const Memory memory = memory_of({buffer});
  ASSERT_EQ(memory.packets().size(), 1u);
  EXPECT_EQ(memory.packets()[0].header.event_count, 1u);
  EXPECT_EQ(memory.packets()[0].header.end_ticks, 2'000'001u);
}

TEST(CollectLive, EndsARecordWithATextBehindTheTextAndNotAtAMultipleOfFour) {
  PacketWriter packet(0, 0, 2'000'000);
  packet.add(Type::task_name, 2'000'000, {1, "ab"});
  const Memory memory = memory_of({packet.live_unfinished(buffer_bytes)});
  EXPECT_EQ(memory.packets()[0].header.content_bits, (64 + 4 + 4 + 3) * 8u);
  EXPECT_EQ(memory.packets()[0].header.packet_bits, (64 + 12) * 8u);
}

TEST(CollectLive, GoesToTheEndOfABufferThatIsFull) {
  PacketWriter packet(1, 0, 2'000'000);
  for (std::size_t at = 64; at < buffer_bytes; at += 4) packet.add(Type::wait_began, 2'000'000);
  const Memory memory = memory_of({packet.live_unfinished(buffer_bytes), packet.live_unfinished(buffer_bytes)});
  ASSERT_EQ(memory.packets().size(), 2u);
  EXPECT_EQ(memory.packets()[0].header.event_count, (buffer_bytes - 64) / 4);
}

TEST(CollectLive, LeavesOutBuffersThatHoldNothing) {
  const std::string none(buffer_bytes, '\0');
  const Memory memory = memory_of({none, PacketWriter(1, 0, 5).live_unfinished(buffer_bytes), none});
  EXPECT_TRUE(memory.packets().empty());
}

TEST(CollectLive, KeepsABufferThatOnlySaysHowMuchWasLost) {
  const Memory memory = memory_of({PacketWriter(1, 0, 5, 17).live_unfinished(buffer_bytes)});
  ASSERT_EQ(memory.packets().size(), 1u);
  EXPECT_EQ(memory.packets()[0].header.lost_events, 17u);
}

TEST(CollectLive, OrdersPacketsByActorAndNumber) {
  const Memory memory =
      memory_of({two_events(2, 1).live_complete(buffer_bytes), two_events(2, 0).live_complete(buffer_bytes),
                 two_events(1, 5).live_complete(buffer_bytes)});
  const auto packets = memory.packets();
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0].header.actor, 1u);
  EXPECT_EQ(packets[1].header.sequence, 0u);
  EXPECT_EQ(packets[2].header.sequence, 1u);
}

TEST(CollectLive, IgnoresAFileThatIsNoneOrShorterThanItSays) {
  EXPECT_TRUE(Memory("").packets().empty());
  EXPECT_TRUE(Memory(std::string(4096, 'x')).packets().empty());
  std::string file = test::live_file("/run", 1, buffer_bytes, {two_events().live_complete(buffer_bytes)});
  EXPECT_TRUE(Memory(file.substr(0, file.size() - 1)).packets().empty());
  for (const std::uint32_t bytes : {0u, 4u, 63u, 65u, 1028u, UINT32_MAX}) {
    std::memcpy(file.data() + 12, &bytes, sizeof bytes);
    EXPECT_TRUE(Memory(file).packets().empty()) << bytes;
  }
}

class RecoverTest : public ::testing::Test {
 protected:
  RecoverTest() { facts_.host = base::host_name(); }

  /// Rank 0 of the sample, killed.
  void kill() {
    facts_.process = dead_process();
    test::kill_sample_rank(folder_, live_, facts_);
  }
  RecoverReport recover(const RecoverOptions& options = {}) {
    const auto report = recover_rank(folder_, options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? report.value() : RecoverReport{};
  }
  void expect_error(base::ErrorCode code, const std::string& what) {
    const auto report = recover_rank(folder_);
    ASSERT_FALSE(report.ok()) << what;
    EXPECT_EQ(report.error().code, code);
    EXPECT_NE(report.error().message.find(what), std::string::npos) << report.error().message;
  }
  std::uint64_t events() {
    const auto trace = TraceReader::open(folder_);
    EXPECT_TRUE(trace.ok()) << trace.error().message;
    if (!trace.ok()) return 0;
    std::uint64_t count = 0;
    const auto read = trace.value()->in_order([](const Event& event) { return event.local_ns; },
                                              [&](const Event&, std::int64_t) { return ++count > 0; });
    EXPECT_TRUE(read.ok());
    return count;
  }

  test::TempFolder temp_;
  std::filesystem::path folder_ = temp_.path() / "run" / "rank-0000";
  std::filesystem::path live_ = temp_.path() / "tandem-trace.1.0";
  test::RankFacts facts_;
};

TEST_F(RecoverTest, AppendsWhatIsMissingAndCutsWhatIsHalf) {
  kill();
  const RecoverReport report = recover();
  EXPECT_EQ(report.ranks, 1u);
  EXPECT_EQ(report.packets_added, 3u);
  EXPECT_EQ(report.events_added, test::sample_worker_events / 4 + 2 + 19);
  EXPECT_EQ(report.bytes_cut, test::sample_worker_packets()[3].size() / 2);
  EXPECT_EQ(report.metadata_written, 1u);
  EXPECT_EQ(events(), test::sample_events + 2);
  EXPECT_FALSE(std::filesystem::exists(live_));
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ / live_link));
  const auto trace = RankTrace::open(folder_);
  EXPECT_FALSE(trace.value()->complete);
  EXPECT_TRUE(trace.value()->recovered);
  EXPECT_FALSE(trace.value()->stream_of(1)->summary().truncated);
  EXPECT_EQ(trace.value()->stream_of(1)->summary().missing_packets, 0u);
  EXPECT_NE(test::read_file(folder_ / manifest_file).find("\"arguments\""), std::string::npos)
      << "the rest of the manifest is kept";
}

TEST_F(RecoverTest, DoesNothingTheSecondTime) {
  kill();
  recover();
  const std::string stream = test::read_file(test::stream_path(folder_, 1));
  EXPECT_EQ(recover().ranks, 0u);
  EXPECT_EQ(test::read_file(test::stream_path(folder_, 1)), stream);
}

TEST_F(RecoverTest, GoesOnWhereItWasInterrupted) {
  kill();
  const std::string live = test::read_file(live_);
  recover();
  const std::string stream = test::read_file(test::stream_path(folder_, 1));
  test::write_file(live_, live);  // as though it had been stopped just before it removed the buffers
  std::filesystem::create_symlink(live_, folder_ / live_link);
  EXPECT_EQ(recover().packets_added, 0u);
  EXPECT_EQ(test::read_file(test::stream_path(folder_, 1)), stream);
  EXPECT_FALSE(std::filesystem::exists(live_));
}

TEST_F(RecoverTest, PutsAPacketWhereItBelongsWhenTheFileIsAhead) {
  kill();
  const auto packets = test::sample_worker_packets();
  // the first is in a live buffer
  test::write_file(test::stream_path(folder_, 1), packets[1] + packets[2] + packets[3]);
  recover();
  EXPECT_EQ(test::read_file(test::stream_path(folder_, 1)).substr(0, packets[0].size()), packets[0]);
  EXPECT_EQ(events(), test::sample_events + 2);
}

TEST_F(RecoverTest, DoesWithoutALiveFile) {
  kill();
  std::filesystem::remove(folder_ / live_link);
  EXPECT_EQ(recover().packets_added, 0u);
  EXPECT_EQ(events(), test::sample_events - 19 - test::sample_worker_events / 4);
}

TEST_F(RecoverTest, DoesWithoutALiveFileThatItsOwnHostHasLost) {
  kill();
  std::filesystem::remove(live_);
  recover();
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ / live_link));
}

TEST_F(RecoverTest, RefusesWhereTheLiveFileIsAnotherHosts) {
  facts_.host = "elsewhere";
  kill();
  std::filesystem::remove(live_);
  expect_error(base::ErrorCode::not_found, "in the memory of elsewhere");
  recover({.force = true});
}

TEST_F(RecoverTest, RefusesWhileTheProcessIsAliveUnlessForced) {
  facts_.process = static_cast<std::uint32_t>(::getpid());
  test::kill_sample_rank(folder_, live_, facts_);
  const std::string before = test::read_file(test::stream_path(folder_, 1));
  expect_error(base::ErrorCode::unsupported, "is alive");
  EXPECT_EQ(test::read_file(test::stream_path(folder_, 1)), before);
  EXPECT_TRUE(std::filesystem::exists(live_));
  std::filesystem::remove(folder_ / live_link);
  expect_error(base::ErrorCode::unsupported, "is alive");
  recover({.force = true});
}

TEST_F(RecoverTest, LeavesATraceThatIsCompleteAsItIs) {
  test::write_sample_rank(folder_, facts_);
  EXPECT_EQ(recover().ranks, 0u);
  test::write_file(
      live_, test::live_file(folder_, dead_process(), buffer_bytes, {two_events(1, 99).live_complete(buffer_bytes)}));
  std::filesystem::create_symlink(live_, folder_ / live_link);
  EXPECT_EQ(recover().packets_added, 0u) << "killed between the end of the trace and the removal of its buffers";
  EXPECT_FALSE(std::filesystem::exists(live_));
  EXPECT_TRUE(RankTrace::open(folder_).value()->complete);
}

TEST_F(RecoverTest, NeverRemovesAFileThatIsNoLiveFile) {
  kill();
  std::filesystem::remove(folder_ / live_link);
  test::write_file(temp_.path() / "precious", std::string(8192, 'x'));
  std::filesystem::create_symlink(temp_.path() / "precious", folder_ / live_link);
  expect_error(base::ErrorCode::malformed, "is no file of live buffers");
  EXPECT_TRUE(std::filesystem::exists(temp_.path() / "precious"));
}

// --- files from other users: nothing outside the folder changes, and the live file remains

TEST_F(RecoverTest, WritesThroughNoLinkThatLiesInTheStreamsPlace) {
  kill();
  const auto precious = temp_.path() / "precious";
  // A file shorter than a packet's header looks as if a full disk had cut its first packet.
  for (const std::string& content : {std::string("short"), std::string(), std::string(100, 'x')}) {
    test::write_file(precious, content);
    std::filesystem::remove(test::stream_path(folder_, 1));
    std::filesystem::create_symlink(precious, test::stream_path(folder_, 1));
    expect_error(base::ErrorCode::io, "it is a symbolic link");
    EXPECT_EQ(test::read_file(precious), content);
    std::filesystem::remove(test::stream_path(folder_, 1));
    std::filesystem::create_hard_link(precious, test::stream_path(folder_, 1));
    EXPECT_FALSE(recover_rank(folder_).ok());
    EXPECT_EQ(test::read_file(precious), content);
  }
  EXPECT_TRUE(std::filesystem::exists(live_));
}

TEST_F(RecoverTest, MakesNoFileThroughADanglingLink) {
  kill();
  std::filesystem::remove(test::stream_path(folder_, 1));
  std::filesystem::create_symlink(temp_.path() / "not-made", test::stream_path(folder_, 1));
  expect_error(base::ErrorCode::io, "it is a symbolic link");
  EXPECT_FALSE(std::filesystem::exists(temp_.path() / "not-made"));
}

TEST_F(RecoverTest, AShortFileThatBeginsNoPacketIsLeftAsItIs) {
  kill();
  const std::vector<std::string> contents{"short", "\xC1\x1F\xFC\xC1\x02",
                                          std::string("\xC1\x1F\xFC\xC1\x01\0\0\1", 8)};
  for (const std::string& content : contents) {
    test::write_file(test::stream_path(folder_, 1), content);
    expect_error(base::ErrorCode::malformed, "no packet begins here");
    EXPECT_EQ(test::read_file(test::stream_path(folder_, 1)), content);
  }
  test::write_file(test::stream_path(folder_, 1), test::sample_worker_packets()[0].substr(0, 40));
  EXPECT_EQ(recover().bytes_cut, 40u);
}

TEST_F(RecoverTest, AStreamOfAnotherActorIsDamage) {
  kill();
  test::write_file(test::stream_path(folder_, 1), two_events(2).bytes());
  expect_error(base::ErrorCode::malformed, "a packet of another actor");
}

TEST_F(RecoverTest, FollowsNoLinkToItsManifestOrItsOwnFolder) {
  kill();
  std::filesystem::rename(folder_ / own_folder, temp_.path() / "other");
  std::filesystem::create_symlink(temp_.path() / "other", folder_ / own_folder);
  EXPECT_FALSE(recover_rank(folder_).ok());
  std::filesystem::remove(folder_ / own_folder);
  std::filesystem::rename(temp_.path() / "other", folder_ / own_folder);
  std::filesystem::rename(folder_ / manifest_file, temp_.path() / "manifest");
  std::filesystem::create_symlink(temp_.path() / "manifest", folder_ / manifest_file);
  EXPECT_FALSE(recover_rank(folder_).ok());
  EXPECT_EQ(test::read_file(temp_.path() / "manifest").find("\"recovered\": true"), std::string::npos);
}

TEST_F(RecoverTest, RemovesTheLiveFileAndNotWhatALinkInItsPlaceNames) {
  kill();
  std::filesystem::rename(live_, temp_.path() / "real");
  std::filesystem::create_symlink(temp_.path() / "real", live_);
  recover();
  EXPECT_TRUE(std::filesystem::exists(temp_.path() / "real"));
}

TEST_F(RecoverTest, ALiveFileThatWasCutGivesWhatIsLeft) {
  kill();
  const std::string whole = test::read_file(live_);
  std::filesystem::resize_file(live_, sizeof(LivePage) + (whole.size() - sizeof(LivePage)) / 2);
  recover();
  EXPECT_GT(events(), 0u);
}

TEST_F(RecoverTest, FilesOfOtherUsersAreNeitherReadNorChanged) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  constexpr uid_t nobody = 65534;
  kill();
  for (const auto& file :
       {live_, folder_, folder_ / own_folder, folder_ / manifest_file, test::stream_path(folder_, 1)}) {
    ASSERT_EQ(::lchown(file.c_str(), nobody, nobody), 0);
    const std::string before = test::read_file(test::stream_path(folder_, 1));
    expect_error(base::ErrorCode::io, "user 65534");
    EXPECT_EQ(test::read_file(test::stream_path(folder_, 1)), before);
    EXPECT_TRUE(std::filesystem::exists(live_));
    ASSERT_EQ(::lchown(file.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(recover().ranks, 1u);
}

TEST_F(RecoverTest, RefusesADamagedStreamRatherThanCutIt) {
  kill();
  std::string stream = test::read_file(test::stream_path(folder_, 1));
  stream[0] = 'x';
  test::write_file(test::stream_path(folder_, 1), stream);
  expect_error(base::ErrorCode::malformed, "damaged");
  EXPECT_EQ(test::read_file(test::stream_path(folder_, 1)), stream);
  EXPECT_TRUE(std::filesystem::exists(live_));
}

TEST_F(RecoverTest, OfARunDoesAllRanks) {
  kill();
  test::write_sample_rank(temp_.path() / "run" / "rank-0001", {.rank = 1, .size = 2});
  const auto report = recover_run(temp_.path() / "run");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report.value().ranks, 1u);
  std::filesystem::remove(temp_.path() / "run" / "rank-0001" / manifest_file);
  EXPECT_FALSE(recover_run(temp_.path() / "run").ok());
  EXPECT_FALSE(recover_run(temp_.path() / "nowhere").ok());
}

TEST(LiveFiles, OfAProcessAreFoundByTheirNames) {
  const auto process = static_cast<std::uint32_t>(::getpid());
  const std::filesystem::path file = std::string(live_folder) + "/" + live_prefix + std::to_string(process) + ".test";
  test::write_file(file, "x");
  const auto files = live_files_of(process);
  std::filesystem::remove(file);
  EXPECT_EQ(files, std::vector{file});
  EXPECT_TRUE(live_files_of(process).empty());
}

TEST(LiveFiles, OfOtherUsersAndLinksAreNotThoseOfAProcess) {
  const auto process = static_cast<std::uint32_t>(::getpid());
  const std::filesystem::path file = std::string(live_folder) + "/" + live_prefix + std::to_string(process) + ".link";
  std::filesystem::create_symlink("/etc/hostname", file);
  EXPECT_TRUE(live_files_of(process).empty());
  std::filesystem::remove(file);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  test::write_file(file, "x");
  EXPECT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(live_files_of(process).empty());
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tandem::trace::recover_test
