// tandem/base/energy_counter.cpp: reads the kernel's powercap files, and follows counters that wrap around.
#include "tandem/base/energy_counter.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/number_of.hpp"

namespace tandem::base {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

/// Reads the number in an open file of sysfs, which each read from its beginning refreshes.
std::optional<std::uint64_t> read_number(int file) noexcept {
  std::array<char, 32> text{};
  const ssize_t bytes = ::pread(file, text.data(), text.size(), 0);
  if (bytes <= 0) return {};
  std::string_view number(text.data(), static_cast<std::size_t>(bytes));
  while (!number.empty() && (number.back() == '\n' || number.back() == ' ')) number.remove_suffix(1);
  return number_of<std::uint64_t>(number);
}

/// A hardware counter that runs from 0 to `range`, and begins again.
class PowercapCounter final : public EnergyCounter {
 public:
  PowercapCounter(std::string name, FileDescriptor file, std::uint64_t first, std::uint64_t range)
      : EnergyCounter(std::move(name)), file_(std::move(file)), last_(first), range_(range) {}

  std::optional<std::uint64_t> read_uj() noexcept override {
    const auto now = read_number(file_.get());
    if (!now) return {};
    if (*now >= last_) sum_ += *now - last_;
    else if (range_ >= last_) sum_ += range_ - last_ + *now;
    else sum_ += *now;  // where the kernel does not say when it begins again, a part is lost
    last_ = *now;
    return sum_;
  }

 private:
  const FileDescriptor file_;
  std::uint64_t last_;
  const std::uint64_t range_;  ///< 0: not known
  std::uint64_t sum_ = 0;
};

/// The unique name of a domain: "package-0" of intel-rapl:0, "package-0 dram" of intel-rapl:0:2; empty: it is no such
/// domain.
std::string name_of_domain(const fs::path& folder) {
  const std::string domain = folder.filename().string();
  constexpr std::string_view prefix = "intel-rapl:";
  if (!domain.starts_with(prefix)) return {};
  const std::string name = first_line(folder / "name");
  const std::size_t part = domain.find(':', prefix.size());
  if (part == std::string::npos) return name.starts_with("package") ? name : std::string();
  if (name != "dram") return {};
  const std::string package = first_line(folder.parent_path() / domain.substr(0, part) / "name");
  return (package.empty() ? domain.substr(0, part) : package) + " dram";
}

void open_domain(const fs::path& folder, std::string name, EnergyCounters& found) {
  const fs::path path = folder / "energy_uj";
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto first = file ? read_number(file.get()) : std::nullopt;
  if (first) {
    const auto range = number_of<std::uint64_t>(first_line(folder / "max_energy_range_uj"));
    found.counters.push_back(
        std::make_unique<PowercapCounter>(std::move(name), std::move(file), *first, range.value_or(0)));
    return;
  }
  const int error = errno;
  if (!found.missing.empty()) return;  // one reason is enough
  const bool is_denied = !file && (error == EACCES || error == EPERM);
  found.missing = path.string() + (is_denied ? " is for root alone"
                                   : file    ? " holds no number"
                                             : std::string(" cannot be read: ") + std::strerror(error));
  if (is_denied)
    found.remedy = "as root, until the next boot: chmod a+r " + (folder.parent_path() / "intel-rapl:*").string() +
                   "/energy_uj (who can read it can guess what other users compute)";
}

}  // namespace

EnergyCounters find_powercap_counters(const fs::path& folder) {
  EnergyCounters found;
  std::vector<fs::path> domains;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    domains.push_back(at->path());
  std::sort(domains.begin(), domains.end());
  for (const fs::path& domain : domains)
    if (std::string name = name_of_domain(domain); !name.empty()) open_domain(domain, std::move(name), found);
  if (!found.counters.empty() || !found.missing.empty()) return found;
  found.missing = "this machine shows no RAPL counters: there is no " + (folder / "intel-rapl:0").string();
  found.remedy = "on a machine of one's own: modprobe intel_rapl_msr; virtual machines and most containers have none";
  return found;
}

}  // namespace tandem::base
