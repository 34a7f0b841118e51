// tandem/trace/read/manifest.hpp: the parts of rank.json that readers need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tandem/base/owned_file.hpp"
#include "tandem/base/result.hpp"
#include "tandem/clock/tsc_clock.hpp"
#include "tandem/trace/declared.hpp"
#include "tandem/trace/layout.hpp"

namespace tandem::trace {

struct Manifest {
  std::string text;  ///< the whole file
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t process = 0;
  std::string host, program, job, commit, version;
  std::vector<std::string> arguments;  ///< of the program, after its name
  std::vector<unsigned> pus;  ///< hardware threads that the rank might run on, ascending; empty: not in rank.json
  clock::TickScale scale;
  std::int64_t realtime_ns = 0;
  std::int64_t realtime_local_ns = 0;
  std::string clock_kind;            ///< "tsc" or "ns"
  std::string selection, when_full, started;  ///< empty: not in rank.json
  std::uint64_t events = 0;  ///< that were written; 0: the trace has not ended
  std::uint64_t lost_events = 0;
  bool complete = false;
  bool recovered = false;
  bool unwritten = false;  ///< the program ended, and could not write the end of its trace
  std::shared_ptr<DeclaredTypes> declared = std::make_shared<DeclaredTypes>();  ///< by the program

  /// Reads rank.json. Errors: not_found, io, malformed (with the key and its fault; also when its types of events are
  /// not event.hpp's).
  static base::Result<Manifest> read(const std::filesystem::path& folder);
  /// Reads rank.json in a folder that was checked; follows no link.
  static base::Result<Manifest> read(const base::OwnedFolder& folder);
};

/// Marks the file: the program was killed and its trace recovered. All or nothing: the file is replaced.
base::Result<void> mark_recovered(const base::OwnedFolder& folder);

}  // namespace tandem::trace
