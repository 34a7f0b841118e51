// tests/fuzz/wire_target.cpp: packets of a peer to an engine that has receives, sends and handlers. Each packet is a
// byte (bits 0 and 1: the peer, bit 2: the rail), the lengths of its control block and of its payload (16 bits each),
// and these.
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "tests/comm_traffic/hostile_world.hpp"
#include "tests/fuzz/target.hpp"

// Sizes that records ask for are refused as they are without a sanitizer.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1:max_allocation_size_mb=512"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem::comm;
  EndpointOptions options;
  options.credit_bytes = 16 * 1024;
  options.credit_messages = 20;
  options.credit_announcements = 5;
  options.forward_bytes = 100'000;
  std::vector<std::byte> rooms[4], sent(100'000);
  for (auto& room : rooms) room.resize(3000);
  hostile::HostileWorld world(options);
  world.receive(Rank{1}, Tag{1}, rooms[0], Channel{1});
  world.receive(any_source, any_tag, rooms[1], Channel{1});
  world.receive(Rank{2}, any_tag, rooms[2], Channel{2});
  world.receive_owned(Rank{1}, Tag{2}, Channel{1});
  world.send(Rank{1}, Tag{1}, sent, Channel{1});
  world.send(Rank{1}, Tag{1}, std::span(sent).first(100), Channel{1});
  world.mcast(Tag{3}, sent, Channel{1});
  std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data), size);
  while (rest.size() > 5) {
    std::uint8_t kind = 0;
    std::uint16_t control_bytes = 0, payload_bytes = 0;
    std::memcpy(&kind, rest.data(), 1);
    std::memcpy(&control_bytes, rest.data() + 1, 2);
    std::memcpy(&payload_bytes, rest.data() + 3, 2);
    rest = rest.subspan(5);
    const auto take = [&](std::size_t bytes) {
      bytes = std::min(bytes, rest.size());
      const auto taken = rest.first(bytes);
      rest = rest.subspan(bytes);
      return taken;
    };
    const auto control = take(control_bytes % 8193);
    const auto payload = take(payload_bytes % 16385);
    if (control.empty()) continue;
    // Exactly as long as the block, so that reading beyond it is seen; and aligned as transports align it.
    auto* const memory = static_cast<std::byte*>(::operator new(control.size(), std::align_val_t{8}));
    std::memcpy(memory, control.data(), control.size());
    const bool open = world.say(Rank{1u + (kind & 3u) % 3u}, {memory, control.size()}, payload, kind >> 2 & 1u);
    ::operator delete(memory, std::align_val_t{8});
    if (!open) break;
  }
  return 0;
}
