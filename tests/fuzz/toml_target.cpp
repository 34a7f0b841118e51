// tests/fuzz/toml_target.cpp: a configuration file.
#include <string_view>

#include "tandem/base/toml_file.hpp"
#include "tests/fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)tandem::base::parse_toml({reinterpret_cast<const char*>(data), size}, "tandem.toml").ok();
  return 0;
}
