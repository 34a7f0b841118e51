// tandem/runtime/worker/link_curves.hpp: links between memories for a series of sizes, each alone and all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/model/transfers/transfer_model.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem::runtime {

/// What was measured of one link.
struct LinkCurves {
  NodeIndex from = 0;              ///< memory
  NodeIndex to = 0;                ///< memory
  model::TransferModel times = {};  ///< by size: alone, and `loaded` while all other links copy the same size
  model::TransferCurve beside_messages = {};  ///< by size, while large messages come and go

  /// GB/s of copies of so many bytes; none: not measured.
  static std::optional<double> rate(const model::TransferCurve& curve, std::size_t bytes);
  /// The rate of large copies, alone and, where that is known, under load and beside messages, by the affine laws of the largest sizes; and the latency
  /// with which it gives the time of the smallest one. None: fewer than two sizes are known.
  std::optional<MachineLink> link() const;
};

/// How to measure.
struct LinkCurveOptions {
  std::vector<std::size_t> sizes{4'096, 16'384, 65'536, 262'144, 1 << 20, 4 << 20, 16 << 20};  ///< bytes, ascending
  std::int64_t most_ns = 30'000'000'000;  ///< about so long in all, at most
  unsigned copies = 29;                   ///< of each size, if the time suffices
  std::function<void(int core)> bind = {};  ///< binds the thread that calls it; empty: they run anywhere
  /// Before each of `steps` steps, by the thread that measures.
  std::function<void(unsigned step, unsigned steps, std::string_view what)> progress = {};
};

/// Measures all links over which one copy leads: between main memory, NUMA nodes, storage, and memories of devices. Each link has a thread, on a
/// core of a worker of the memory that is copied to, if one is bound there, and memory of its own. Sizes are left out that do not fit well into a budget, or
/// get too few copies in the time; links are left out whose copies fail or find no memory. Before the runtime begins; the world's machine stays as it is.
///
/// Threads: one at a time calls it. While there is traffic it measures nothing.
class LinkMeter {
 public:
  /// `world` outlives it. Takes the memory that the copies need.
  LinkMeter(World& world, LinkCurveOptions options);
  ~LinkMeter();  ///< traffic has stopped
  LinkMeter(const LinkMeter&) = delete;
  LinkMeter& operator=(const LinkMeter&) = delete;

  bool has_links() const noexcept;  ///< there is something to measure

  /// First each link copies alone; then all do, over and over, until each has its `copies`.
  void measure();
  /// Each link copies alone, while the caller lets messages come and go.
  void measure_beside_messages();

  /// From now on all links copy `bytes`, or what they have room for, over and over.
  void start_traffic(std::size_t bytes);
  /// Until now. Without effect when there is none.
  void stop_traffic() noexcept;

  /// What was measured so far.
  std::vector<LinkCurves> curves() const;

 private:
  class Measurement;
  const std::unique_ptr<Measurement> measurement_;
};

/// `machine` has these links now, as far as enough is known of them.
void take_links(Machine& machine, std::span<const LinkCurves> curves);

/// `LinkMeter::measure` alone.
std::vector<LinkCurves> measure_link_curves(World& world, const LinkCurveOptions& options = {});

}  // namespace tandem::runtime
