// tests/fuzz/machine_target.cpp: a file of a machine. What is read can be written and read again.
#include <cstdlib>
#include <string>
#include <string_view>

#include "tandem/runtime/machine/machine_file.hpp"
#include "tests/fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem::runtime;
  const auto machine = parse_machine({reinterpret_cast<const char*>(data), size}, "machine.toml");
  if (!machine.ok()) return 0;
  const std::string text = to_text(machine.value());
  const auto again = parse_machine(text, "machine.toml");
  if (!again.ok() || to_text(again.value()) != text) std::abort();
  return 0;
}
