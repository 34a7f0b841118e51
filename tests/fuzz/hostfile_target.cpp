// tests/fuzz/hostfile_target.cpp: a hostfile, a list of hosts, and where ranks go then.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/target.hpp"
#include "tools/launcher/plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem::tools;
  static const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("tandem-fuzz-hosts-" + std::to_string(::getpid()));
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::ofstream(file, std::ios::binary) << text;
  const auto shares = read_hostfile(file);
  std::filesystem::remove(file);
  for (const auto* hosts : {&shares}) {
    if (!hosts->ok()) continue;
    (void)place_ranks(std::nullopt, hosts->value()).ok();
    (void)place_ranks(7, hosts->value()).ok();
  }
  if (const auto hosts = parse_hosts(text)) (void)place_ranks(std::nullopt, hosts.value()).ok();
  return 0;
}
