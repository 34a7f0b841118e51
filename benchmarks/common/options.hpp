// benchmarks/common/options.hpp: the command line that all benchmark programs share.
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace benchmarks {

/// Options of the form `--key value`, and flags of the form `--key`, out of a fixed list. Anything else ends the
/// program with exit code 2 and a line on standard error: standard output belongs to the results.
class Options {
 public:
  /// `valued` and `flags` name the accepted keys without dashes.
  Options(int argc, char** argv, const std::vector<std::string_view>& valued,
          const std::vector<std::string_view>& flags = {}) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      const std::string_view key = argument.starts_with("--") ? argument.substr(2) : std::string_view{};
      if (contains(valued, key) && i + 1 < argc) {
        values_.insert_or_assign(std::string(key), argv[++i]);
      } else if (contains(flags, key)) {
        values_.insert_or_assign(std::string(key), "");
      } else {
        fail(argv[0], argument, valued, flags);
      }
    }
  }

  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }

  std::string text(std::string_view key, std::string_view fallback) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::string(fallback) : found->second;
  }

  /// A positive number; anything else ends the program.
  unsigned count(std::string_view key, unsigned fallback) const {
    const auto found = values_.find(key);
    if (found == values_.end()) {
      return fallback;
    }
    unsigned value = 0;
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value == 0) {
      std::fprintf(stderr, "--%s wants a positive number, not '%s'\n", found->first.c_str(), text.c_str());
      std::exit(2);
    }
    return value;
  }

 private:
  static bool contains(const std::vector<std::string_view>& keys, std::string_view key) {
    for (const std::string_view candidate : keys) {
      if (candidate == key) {
        return true;
      }
    }
    return false;
  }

  [[noreturn]] static void fail(const char* program, std::string_view argument,
                                const std::vector<std::string_view>& valued,
                                const std::vector<std::string_view>& flags) {
    std::fprintf(stderr, "%s: cannot use '%.*s'; options:", program, static_cast<int>(argument.size()),
                 argument.data());
    for (const std::string_view key : valued) {
      std::fprintf(stderr, " --%.*s VALUE", static_cast<int>(key.size()), key.data());
    }
    for (const std::string_view key : flags) {
      std::fprintf(stderr, " --%.*s", static_cast<int>(key.size()), key.data());
    }
    std::fputc('\n', stderr);
    std::exit(2);
  }

  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace benchmarks
