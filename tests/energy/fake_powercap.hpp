// tests/energy/fake_powercap.hpp: a folder as the kernel's powercap has it, whose counters a test moves.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace tandem::test {

/// Gone with the object.
class FakePowercap {
 public:
  FakePowercap() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-powercap-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~FakePowercap() {
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);
  }
  FakePowercap(const FakePowercap&) = delete;
  FakePowercap& operator=(const FakePowercap&) = delete;

  const std::filesystem::path& folder() const noexcept { return folder_; }
  std::filesystem::path energy_of(const std::string& domain) const { return folder_ / domain / "energy_uj"; }

  void add(const std::string& domain, const std::string& name, std::uint64_t uj,
           std::uint64_t range_uj = 262'143'328'850) {
    std::filesystem::create_directories(folder_ / domain);
    std::ofstream(folder_ / domain / "name") << name << "\n";
    std::ofstream(folder_ / domain / "max_energy_range_uj") << range_uj << "\n";
    set(domain, uj);
  }
  /// In the file that readers have open, by one write of a text that is always as long: a reader finds the old number
  /// or the new one.
  void set(const std::string& domain, std::uint64_t uj) {
    const int file = ::open(energy_of(domain).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    std::string text = std::to_string(uj) + "\n";
    text.insert(0, 21 - text.size(), '0');
    if (::pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("cannot write " + energy_of(domain).string());
    ::close(file);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace tandem::test
