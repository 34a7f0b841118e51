// tests/fuzz/target.hpp: the function that each target defines, under the name that libFuzzer wants.
#pragma once

#include <cstddef>
#include <cstdint>

/// Reads `size` bytes that anybody may have written. Returns 0; whatever is wrong crashes, or is found by a sanitizer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
