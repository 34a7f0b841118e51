// tandem/trace/read/fuzz_test.cpp: folders and live files with random damage: reading ends, with an answer or an error.
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "tandem/trace/read/read_everything.hpp"
#include "tandem/trace/read/sample_trace.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace::fuzz_test {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Flips bits, overwrites words with extremes, cuts, doubles, moves.
class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  std::string to(std::string bytes) {
    const int blows = 1 + static_cast<int>(below(4));
    for (int i = 0; i < blows && !bytes.empty(); ++i) strike(bytes);
    return bytes;
  }
  std::size_t below(std::size_t count) { return random_() % count; }

 private:
  void strike(std::string& bytes) {
    // Half of the damage hits headers.
    const std::size_t at = below(2) == 0 ? below(std::min<std::size_t>(bytes.size(), 160)) : below(bytes.size());
    switch (below(5)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes[at] = static_cast<char>(random_()); break;
      case 2: {
        static constexpr std::uint64_t extremes[] = {0,    1, 0xFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000,
                                                     ~0ULL};
        const std::uint64_t word = extremes[below(std::size(extremes))];
        std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(sizeof word, bytes.size() - at));
        break;
      }
      case 3: bytes.resize(at); break;
      default: bytes.insert(at, bytes.substr(below(bytes.size()), below(100)));
    }
  }
  std::mt19937_64 random_;
};

TEST(TraceFuzz, NoDamageToAFolderDoesMoreThanAnError) {
  const std::uint64_t first_seed = number_of("TANDEM_TEST_SEED", 1), rounds = number_of("TANDEM_TEST_ROUNDS", 2'000);
  test::TempFolder folder;
  const auto run = folder.path() / "run";
  test::write_sample_run(run);
  const auto damaged_rank = test::sample_rank_folder(run, 1);
  std::filesystem::remove_all(test::sample_rank_folder(run, 0));
  const std::vector<std::filesystem::path> files{test::stream_path(damaged_rank, 0), test::stream_path(damaged_rank, 2),
                                                 test::stream_path(damaged_rank, 3), test::stream_path(damaged_rank, 1),
                                                 test::stream_path(damaged_rank, 4), damaged_rank / manifest_file};
  test::write_file(files[4], test::sample_compound().bytes());
  const std::uint64_t whole = test::read_everything(run);
  EXPECT_EQ(whole, test::sample_events + test::sample_descriptions + test::sample_compound_events);
  std::uint64_t fewer = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + rounds; ++seed) {
    SCOPED_TRACE("TANDEM_TEST_SEED=" + std::to_string(seed) + " TANDEM_TEST_ROUNDS=1");
    Damage damage(seed);
    const auto& file = files[damage.below(files.size())];
    const std::string original = test::read_file(file);
    test::write_file(file, damage.to(original));
    if (test::read_everything(run) < whole) ++fewer;
    test::write_file(file, original);
  }
  if (rounds > 100) {
    EXPECT_GT(fewer, rounds / 4) << "the damage is not found";
  }
}

TEST(TraceFuzz, WhatIsCollectedOfDamagedLiveBuffersCanBeRead) {
  const std::uint64_t first_seed = number_of("TANDEM_TEST_SEED", 1), rounds = number_of("TANDEM_TEST_ROUNDS", 2'000);
  constexpr std::size_t buffer_bytes = 4096;
  const auto in_buffer = [](std::string bytes) {
    bytes.resize(buffer_bytes);
    return bytes;
  };
  test::PacketWriter unfinished(1, 7, 9'000'000);
  for (int i = 0; i < 20; ++i) unfinished.add(Type::option, 9'000'000 + 40'000'000 * i, {"name", "value", "source"});
  const std::string live =
      test::live_file("/run", 1, buffer_bytes,
                      {in_buffer(test::sample_progress(0)), in_buffer(""), unfinished.live_unfinished(buffer_bytes),
                       test::sample_compound().live_unfinished(buffer_bytes)});
  const std::shared_ptr<const DeclaredTypes> declared(&test::sample_declared(), [](const DeclaredTypes*) {});
  test::TempFolder folder;
  const auto file = folder.path() / "stream_0001";
  std::uint64_t events = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + rounds; ++seed) {
    SCOPED_TRACE("TANDEM_TEST_SEED=" + std::to_string(seed) + " TANDEM_TEST_ROUNDS=1");
    Damage damage(seed);
    const std::string bytes = damage.to(live);
    const test::AlignedBytes memory(bytes);
    for (const LivePacket& packet : collect_live(memory.bytes(), *declared)) {
      std::string stream(sizeof packet.header + packet.content_bytes(), '\0');
      std::memcpy(stream.data(), &packet.header, sizeof packet.header);
      std::memcpy(stream.data() + sizeof packet.header, packet.content, packet.content_bytes());
      stream.resize(packet.header.packet_bits / 8);
      test::write_file(file, stream);
      auto reader = StreamReader::open(file, 0, test::RankFacts{}.scale(), declared);
      if (!reader) continue;  // a time outside the clock's range
      for (;;) {
        const auto event = reader.value()->next();
        ASSERT_TRUE(event.ok()) << event.error().message;
        if (!event.value()) break;
        ++events;
      }
    }
  }
  EXPECT_GT(events, rounds);
}

}  // namespace
}  // namespace tandem::trace::fuzz_test
