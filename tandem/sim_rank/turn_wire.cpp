// tandem/sim_rank/turn_wire.cpp: turns as bytes.
#include "tandem/sim_rank/turn_wire.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"

namespace tandem::sim {

using comm::internal::ByteReader;
using comm::internal::ByteWriter;

namespace {

/// Names of codelets are short.
constexpr std::size_t most_name_bytes = std::size_t{1} << 20;
constexpr std::size_t most_machine_bytes = std::size_t{1} << 20;

base::Error malformed() {
  return {base::ErrorCode::malformed, "what the other end of a simulation has sent does not follow its format"};
}

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t read_time(ByteReader& reader) { return static_cast<std::int64_t>(reader.u64()); }
double read_real(ByteReader& reader) { return std::bit_cast<double>(reader.u64()); }

void write(const Node& node, ByteWriter& writer) {
  writer.u32(node.count)
      .u32(node.cores)
      .u32(node.numa_nodes)
      .u64(bits(node.numa_bytes_per_ns))
      .u64(bits(node.numa_latency_ns))
      .u64(bits(node.remote))
      .u32(base::narrow<std::uint32_t>(node.devices.size()));
  for (const DeviceGroup& group : node.devices)
    writer.u8(static_cast<std::uint8_t>(group.kind))
        .u32(group.count)
        .u64(group.memory_bytes)
        .u64(bits(group.latency_ns))
        .u64(bits(group.bytes_per_ns))
        .u32(group.depth);
}

Node read_node(ByteReader& reader) {
  Node node;
  node.count = reader.u32();
  node.cores = reader.u32();
  node.numa_nodes = reader.u32();
  node.numa_bytes_per_ns = read_real(reader);
  node.numa_latency_ns = read_time(reader);
  node.remote = read_real(reader);
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    DeviceGroup& group = node.devices.emplace_back();
    group.kind = static_cast<DeviceKind>(reader.u8());
    group.count = reader.u32();
    group.memory_bytes = reader.u64();
    group.latency_ns = read_time(reader);
    group.bytes_per_ns = read_real(reader);
    group.depth = reader.u32();
  }
  return node;
}

bool is_sound(const Node& node) {
  const auto are_sound = [](const DeviceGroup& group) {
    const bool is_known = group.kind == DeviceKind::cuda || group.kind == DeviceKind::opencl;
    return is_known && group.latency_ns >= 0 && group.bytes_per_ns > 0 && group.depth > 0;
  };
  return node.numa_nodes > 0 && node.numa_bytes_per_ns > 0 && node.numa_latency_ns >= 0 && node.remote > 0 &&
         std::ranges::all_of(node.devices, are_sound);
}

}  // namespace

std::string encode(const Greeting& greeting) { return ByteWriter().u32(greeting.version).u32(greeting.rank).take(); }

base::Result<Greeting> decode_greeting(std::string_view body) {
  ByteReader reader(body);
  Greeting greeting;
  greeting.version = reader.u32();
  greeting.rank = reader.u32();
  if (!reader.finished()) return malformed();
  return greeting;
}

std::string encode(const RankPlace& place) {
  const Platform& platform = place.platform;
  ByteWriter writer;
  writer.u32(turn_version)
      .u32(place.rank)
      .u64(place.seed)
      .u8(static_cast<std::uint8_t>(place.execution))
      .u64(bits(place.host_speed))
      .u32(platform.ranks)
      .u32(platform.ranks_per_node)
      .u32(platform.cores)
      .u64(bits(platform.latency_ns))
      .u64(bits(platform.bytes_per_ns))
      .u64(bits(platform.node_latency_ns))
      .u64(bits(platform.node_bytes_per_ns))
      .u64(platform.segment_bytes)
      .u64(bits(platform.node_spread))
      .u64(bits(platform.run_spread))
      .u64(bits(platform.submit_ns))
      .u64(bits(platform.task_ns))
      .u64(bits(platform.wake_ns))
      .u64(bits(platform.packet_ns))
      .u64(bits(platform.copy_bytes_per_ns))
      .text(platform.contention ? model::contention::to_text(*platform.contention) : "")
      .u32(base::narrow<std::uint32_t>(platform.nodes.size()));
  for (const Node& node : platform.nodes) write(node, writer);
  return writer.take();
}

base::Result<RankPlace> decode_place(std::string_view body) {
  ByteReader reader(body);
  const std::uint32_t version = reader.u32();
  if (reader.ok() && version != turn_version)
    return base::Error{
        base::ErrorCode::unsupported,
        "`tandem simulate` and the program are of different versions of Tandem: build the program with the one "
        "whose command simulates it"};
  RankPlace place;
  place.rank = reader.u32();
  place.seed = reader.u64();
  place.execution = static_cast<Execution>(reader.u8());
  place.host_speed = read_real(reader);
  Platform& platform = place.platform;
  platform.ranks = reader.u32();
  platform.ranks_per_node = reader.u32();
  platform.cores = reader.u32();
  platform.latency_ns = read_time(reader);
  platform.bytes_per_ns = read_real(reader);
  platform.node_latency_ns = read_time(reader);
  platform.node_bytes_per_ns = read_real(reader);
  platform.segment_bytes = reader.u64();
  platform.node_spread = read_real(reader);
  platform.run_spread = read_real(reader);
  platform.submit_ns = read_time(reader);
  platform.task_ns = read_time(reader);
  platform.wake_ns = read_time(reader);
  platform.packet_ns = read_time(reader);
  platform.copy_bytes_per_ns = read_real(reader);
  if (const std::string_view contention = reader.text(most_machine_bytes); !contention.empty()) {
    auto machine = model::contention::parse_machine(contention, "the simulation's platform");
    if (!machine) return machine.error();
    platform.contention = std::move(machine).value();
  }
  platform.nodes.clear();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) platform.nodes.push_back(read_node(reader));
  const bool is_all_sound = place.execution <= Execution::all && place.host_speed >= 0 && place.rank < platform.ranks &&
                            platform.ranks_per_node > 0 && platform.segment_bytes > 0 && platform.cores > 0 &&
                            platform.least_latency_ns() >= 0 && platform.submit_ns >= 0 && platform.task_ns >= 0 &&
                            platform.wake_ns >= 0 && platform.packet_ns >= 0 && !platform.nodes.empty() &&
                            std::ranges::all_of(platform.nodes, is_sound);
  if (!reader.finished() || !is_all_sound) return malformed();
  return place;
}

std::string encode(const Turn& turn) {
  ByteWriter writer;
  writer.u64(bits(turn.date_ns)).u32(base::narrow<std::uint32_t>(turn.parcels.size()));
  for (const Parcel& parcel : turn.parcels) writer.u32(parcel.rank).u64(bits(parcel.when_ns)).text(parcel.message);
  return writer.take();
}

base::Result<Turn> decode_turn(std::string_view body) {
  ByteReader reader(body);
  Turn turn;
  turn.date_ns = read_time(reader);
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    Parcel& parcel = turn.parcels.emplace_back();
    parcel.rank = reader.u32();
    parcel.when_ns = read_time(reader);
    parcel.message = reader.text(most_turn_bytes);
  }
  if (!reader.finished() || turn.date_ns < 0) return malformed();
  return turn;
}

std::string encode(const runtime::EmulatedTask& task) {
  ByteWriter writer;
  writer.text(task.codelet).u8(static_cast<std::uint8_t>(task.device)).u32(task.implementation);
  writer.u32(base::narrow<std::uint32_t>(task.data.size()));
  for (const runtime::Shape& shape : task.data) writer.u64(shape.rows).u64(shape.cols).u64(shape.element_bytes);
  return writer.take();
}

base::Result<AskedTask> decode_task(std::string_view body) {
  ByteReader reader(body);
  AskedTask task;
  task.codelet = reader.text(most_name_bytes);
  task.device = static_cast<DeviceKind>(reader.u8());
  task.implementation = reader.u32();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    runtime::Shape& shape = task.data.emplace_back();
    shape.rows = reader.u64();
    shape.cols = reader.u64();
    shape.element_bytes = reader.u64();
  }
  if (!reader.finished()) return malformed();
  return task;
}

std::string encode(const std::optional<KernelTime>& time) {
  const KernelTime known = time.value_or(KernelTime());
  ByteWriter writer;
  writer.u8(time.has_value()).u8(known.computes);
  writer.u64(bits(known.mean_ns)).u64(bits(known.deviation_ns)).u64(bits(known.mean_error_ns));
  writer.u64(bits(known.bytes));
  writer.u32(base::narrow<std::uint32_t>(known.slow_down.points().size()));
  for (const runtime::SlowDown::Point& point : known.slow_down.points()) writer.u32(point.busy).u64(bits(point.factor));
  return writer.take();
}

base::Result<std::optional<KernelTime>> decode_time(std::string_view body) {
  ByteReader reader(body);
  const bool is_known = reader.u8() != 0;
  KernelTime time;
  time.computes = reader.u8() != 0;
  for (double* const value : {&time.mean_ns, &time.deviation_ns, &time.mean_error_ns, &time.bytes}) {
    *value = read_real(reader);
    if (!(*value >= 0 && *value < 1e18)) return malformed();
  }
  std::vector<runtime::SlowDown::Point> points;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    runtime::SlowDown::Point& point = points.emplace_back();
    point.busy = reader.u32();
    point.factor = read_real(reader);
    if (!(point.factor > 0 && point.factor < 1e6)) return malformed();
  }
  time.slow_down = runtime::SlowDown(std::move(points));
  if (!reader.finished()) return malformed();
  return is_known ? std::optional(time) : std::optional<KernelTime>();
}

}  // namespace tandem::sim
