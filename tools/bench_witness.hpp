// tools/bench_witness.hpp: whether the machine is as it usually is, so that programs are compared on the same one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tandem/base/result.hpp"
#include "tools/subprocess.hpp"

namespace tandem::tools {

/// A quick program that tells by one number how the machine is now. The processors of a virtual machine move: two of them may
/// share a core for some tenths of a second, and be far apart afterwards, and whatever is exchanged between them then takes a
/// third or three times the time.
struct BenchWitness {
  Command command;          ///< its first result is the number
  std::string what;         ///< that it is, for people: "a flag from processor to processor"
  double tolerance = 1.35;  ///< the machine is as usual while the number is within this factor of the usual one
};

/// What the witness said during a suite.
struct WitnessAccount {
  double usual = 0;
  std::string unit;
  unsigned runs = 0;      ///< of programs
  unsigned repeated = 0;  ///< since the machine was not as usual before or after them
  unsigned unusual = 0;   ///< that count all the same: the machine did not become as usual in time
};

/// Asks the witness around runs. Single-threaded.
class Watch {
 public:
  /// A number, or why there is none.
  using Ask = std::function<base::Result<double>()>;

  /// Asks often enough to learn what is usual: the median. Errors: the witness's first one.
  static base::Result<Watch> begin(Ask ask, double tolerance);

  /// Calls `run`, which may be repeated; what the last call did counts. A run that fails is not repeated: `run` says false then.
  void around(const std::function<bool()>& run);

  const WitnessAccount& account() const noexcept { return account_; }

 private:
  Watch(Ask ask, double tolerance, double usual) : ask_(std::move(ask)), tolerance_(tolerance) { account_.usual = usual; }
  bool as_usual();
  bool wait_until_usual();

  Ask ask_;
  double tolerance_;
  WitnessAccount account_;
};

}  // namespace tandem::tools
