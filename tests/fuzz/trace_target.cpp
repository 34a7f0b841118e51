// tests/fuzz/trace_target.cpp: one file of a trace's folder, or the buffers of a program that was killed. The first
// byte says which.
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/trace/read/read_everything.hpp"
#include "tandem/trace/read/sample_trace.hpp"
#include "tandem/trace/recover.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using namespace tandem::trace;

/// A small trace of one rank, of which one file is replaced at a time.
struct Sample {
  Sample() {
    test::write_sample_run(run);
    std::filesystem::remove_all(test::sample_rank_folder(run, 0));
    const auto rank = test::sample_rank_folder(run, 1);
    files = {test::stream_path(rank, 0), test::stream_path(rank, 1), test::stream_path(rank, 2),
             test::stream_path(rank, 3), rank / manifest_file};
    for (const auto& file : files) originals.push_back(test::read_file(file));
  }
  test::TempFolder folder;
  std::filesystem::path run = folder.path() / "run";
  std::vector<std::filesystem::path> files;
  std::vector<std::string> originals;
};

void recover(const Sample& sample, const std::string& bytes) {
  static const std::shared_ptr<const DeclaredTypes> declared(&test::sample_declared(), [](const DeclaredTypes*) {});
  const test::AlignedBytes memory(bytes);
  for (const LivePacket& packet : collect_live(memory.bytes(), *declared)) {
    std::string stream(sizeof packet.header + packet.content_bytes(), '\0');
    std::memcpy(stream.data(), &packet.header, sizeof packet.header);
    std::memcpy(stream.data() + sizeof packet.header, packet.content, packet.content_bytes());
    stream.resize(packet.header.packet_bits / 8);
    const auto file = sample.folder.path() / "stream_0001";
    test::write_file(file, stream);
    auto reader = StreamReader::open(file, 0, test::RankFacts{}.scale(), declared);
    if (!reader) continue;
    while (true) {
      const auto event = reader.value()->next();
      if (!event || !event.value()) break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sample sample;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t which = data[0] % (sample.files.size() + 1);
  if (which == sample.files.size()) return recover(sample, bytes), 0;
  test::write_file(sample.files[which], bytes);
  (void)test::read_everything(sample.run);
  test::write_file(sample.files[which], sample.originals[which]);
  return 0;
}
