// tandem/trace/read/sample_trace.hpp: a run of two ranks with every kind of record, for tests.
#pragma once

#include <filesystem>
#include <string>

#include "tandem/trace/read/test_support.hpp"

namespace tandem::trace::test {

/// Stamps are in steps that need compact and extended headers; packets follow each other within a stream; the ranks
/// exchange messages. Each rank has `sample_events` events, and `sample_descriptions` besides.
inline constexpr int sample_tasks = 400;
inline constexpr std::uint64_t sample_worker_events = 3 * sample_tasks;
inline constexpr std::uint64_t sample_other_events = 24;
inline constexpr std::uint64_t sample_events = sample_worker_events + sample_other_events;
inline constexpr std::uint64_t sample_descriptions = 11;

/// Each rank's clock is behind rank 0's, increasingly.
inline ClockPoint sample_first_point(std::uint32_t rank) {
  return {ClockPointKind::barrier, 5'000, 5'000 + 100 * rank, 20, 0};
}
inline ClockPoint sample_last_point(std::uint32_t rank) {
  return {ClockPointKind::barrier, 2'000'005'000, 2'000'005'000 + 300 * rank, 20, 0};
}

inline std::string sample_catalogue(std::uint32_t rank) {
  const ClockPoint first = sample_first_point(rank), last = sample_last_point(rank);
  PacketWriter packet(0, 0, 1'000'000);
  packet.add(Type::actor, 1'000'000, {1, 2, 0, 3, "worker 0"})
      .add(Type::actor, 1'000'000, {2, 3, 0, -1, "progress"})
      .add(Type::actor, 1'000'000, {3, 5, 0, -1, "flusher"})
      .add(Type::site, 1'000'000, {0, 42, "potrf", "app.cpp"})
      .add(Type::data, 1'000'000, {0, 0, 8192, 32, 32, 0, "A[0,0]"})
      .add(Type::name, 1'000'000, {0, 2, "phase \"one\""})
      .add(Type::name, 1'000'000, {1, 1, "residual"})
      .add(Type::task_name, 1'000'000, {3, "first"})
      .add(Type::option, 1'000'000, {"sched", "lws", "command line"})
      .add(Type::clock_point, 1'000'000, {0, first.local_ns, first.reference_ns, first.error_ns, first.late_ns})
      .add(Type::clock_point, 1'000'000, {0, last.local_ns, last.reference_ns, last.error_ns, last.late_ns});
  return packet.bytes();
}

inline std::vector<std::string> sample_worker_packets() {
  std::vector<std::string> packets;
  std::uint64_t ticks = 1'000'100;
  for (int packet_index = 0; packet_index < 4; ++packet_index) {
    PacketWriter packet(1, packet_index, ticks);
    for (int i = 0; i < sample_tasks / 4; ++i) {
      const int task = packet_index * (sample_tasks / 4) + i + 1;
      std::vector<std::uint32_t> before;  // the first task comes before all others
      if (task > 1) before.push_back(static_cast<std::uint32_t>(task) - 1);
      packet.add(Type::task_submitted, ticks,
                 {task, -2, 0, 2, before.size(), std::vector<std::uint32_t>{access_word(0, 2), 17}, before});
      packet.add(Type::task_started, ticks + 10, {task});
      packet.add(Type::task_ended, ticks + 500 + i, {task});
      // Some steps are longer than the 2^25 ticks that a compact stamp spans, and one is exactly that.
      ticks += i % 16 == 15 ? 40'000'000 : 1'000;
      if (i == 40) ticks += RecordHeader::stamp_span - 1'000;
    }
    packets.push_back(packet.bytes());
  }
  return packets;
}

inline std::string joined(const std::vector<std::string>& packets) {
  std::string bytes;
  for (const std::string& packet : packets) bytes += packet;
  return bytes;
}

inline std::string sample_progress(std::uint32_t rank) {
  const std::uint32_t other = 1 - rank;
  PacketWriter packet(2, 0, 1'000'050);
  packet.add(Type::progress_state, 1'000'050, {0});
  for (int i = 0; i < 3; ++i) packet.add(Type::send_posted, 1'001'000 + 100 * i, {i, other, 7, 5, 99, 4096});
  for (int i = 0; i < 3; ++i) packet.add(Type::message_arrived, 1'011'000 + 100 * i, {10 + i, other, 7, 99, 4096});
  packet.add(Type::mcast_routed, 1'020'000, {20, 1, 65536, 0, std::vector<std::uint32_t>{}});
  packet.add(Type::mcast_routed, 1'020'001, {21, 1, 65536, 2, std::vector<std::uint32_t>{4, 5}});
  packet.add(Type::progress_state, 1'030'000, {2});
  packet.add(Type::span_began, 1'040'000, {0})
      .add(Type::mark, 1'040'100, {0, 1.5})
      .add(Type::counter, 1'040'200, {1, -0.25});
  packet.add(Type::span_ended, 1'041'000, {0});
  packet.add(Type::wait_began, 1'042'000).add(Type::wait_ended, 1'043'000);
  // Types that the program declared, one of them last in its packet.
  packet.add_sample(1'044'000, 17, 0.25, "seventeen")
      .add_sample(1'044'000, 18, -1, "")
      .add_sample(1'045'000, 19, 1e300, "x");
  return packet.bytes();
}

inline std::string sample_flusher() {
  std::string bytes;
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t ticks = 2'000'000 + 1'000 * i;
    bytes += PacketWriter(3, i, ticks).add(Type::flush_began, ticks, {1, 65536}).add(Type::flush_ended, ticks + 900, {1}).bytes();
  }
  return bytes + PacketWriter(3, 2, 2'010'000).add(Type::tracer_waited, 2'010'000, {123}).bytes();
}

/// A packet of actor 4 with records that stand for several events; the last task runs. Not in the sample rank.
inline constexpr std::uint64_t sample_compound_events = 10 * 19 + 2;
inline PacketWriter sample_compound() {
  using List = std::vector<std::uint32_t>;
  PacketWriter packet(4, 0, 1'000'000);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const std::uint64_t ticks = 1'000'000 + 1'000 * i;
    packet.add(Type::task_submitted, ticks, {6 * i, -2, 0, 1, 0, List{17}, List{}})
        .add(Type::task_submitted_next, ticks + 1, {0, -2, 0, 1, 1, List{17}, List{1}})
        .add(Type::task_submitted_next, ticks + 2, {kNotPushed, 2, 0, 0, 0, List{}, List{}})
        .add(Type::task_submitted_alike, ticks + 3, {2, 1, 1, List{18}, List{3}})
        .add(Type::task_submitted_next_wide, ticks + 4, {0, 2, 0, 1, 1, List{1U << 20}, List{70'000}})
        .add(Type::task_submitted_alike_wide, ticks + 5, {0, 1, 0, List{1U << 20}, List{}})
        .add(Type::task_ran_popped, ticks + 10, {6 * i, 11})
        .add(Type::task_ran_kept, ticks + 20, {6 * i + 1, 11})
        .add(Type::task_released, ticks + 30, {6 * i + 2})
        .add(Type::task_ran_stolen, ticks + 30, {6 * i + 2, 11, 3});
  }
  packet.add(Type::task_ran_popped, 1'010'000, {99, kNoLength});
  return packet;
}

inline std::filesystem::path sample_rank_folder(const std::filesystem::path& run, std::uint32_t rank) {
  return run / rank_folder_name(rank);
}

/// The sample's events; of receives only the arrival.
inline constexpr const char* sample_selection = "-comm.receive_posted";

inline void write_sample_rank(const std::filesystem::path& folder, RankFacts facts) {
  facts.selection = sample_selection;
  facts.events = sample_events + sample_descriptions;
  facts.line = {sample_first_point(facts.rank), sample_last_point(facts.rank)};
  write_rank(folder, facts);
  write_file(stream_path(folder, 0), sample_catalogue(facts.rank));
  write_file(stream_path(folder, 1), joined(sample_worker_packets()));
  write_file(stream_path(folder, 2), sample_progress(facts.rank));
  write_file(stream_path(folder, 3), sample_flusher());
}

inline void write_sample_run(const std::filesystem::path& run) {
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    write_sample_rank(sample_rank_folder(run, rank), {.rank = rank, .size = 2});
}

/// A sample rank in the state in which it was killed: its progress engine's events are in a live buffer only; of its
/// worker's stream the last packet is written in part and in a buffer as a whole, the first is still in a buffer, too,
/// and a task runs; one buffer is empty.
inline void kill_sample_rank(const std::filesystem::path& folder, const std::filesystem::path& live, RankFacts facts) {
  constexpr std::size_t buffer_bytes = 65536;
  facts.complete = false;
  facts.selection = sample_selection;
  write_rank(folder, facts, /*with_metadata=*/false);
  std::filesystem::remove(folder / metadata_file);
  const std::vector<std::string> worker = sample_worker_packets();
  PacketHeader last;
  std::memcpy(&last, worker[3].data(), sizeof last);
  PacketWriter running(1, 4, last.end_ticks);
  running.add(Type::task_submitted, last.end_ticks + 1,
              {sample_tasks + 1, 0, 0, 0, 0, std::vector<std::uint32_t>{}, std::vector<std::uint32_t>{}});
  running.add(Type::task_started, last.end_ticks + 5, {sample_tasks + 1});
  std::vector<std::string> buffers{running.live_unfinished(buffer_bytes), worker[3], "", sample_progress(facts.rank),
                                   worker[0]};
  for (std::string& buffer : buffers) buffer.resize(buffer_bytes);

  write_file(stream_path(folder, 0), sample_catalogue(facts.rank));
  write_file(stream_path(folder, 1), worker[0] + worker[1] + worker[2] + worker[3].substr(0, worker[3].size() / 2));
  write_file(stream_path(folder, 3), sample_flusher());
  std::filesystem::remove(stream_path(folder, 2));
  write_file(live, live_file(folder, facts.process, buffer_bytes, buffers));
  std::filesystem::remove(folder / live_link);
  std::filesystem::create_symlink(live, folder / live_link);
}

}  // namespace tandem::trace::test
