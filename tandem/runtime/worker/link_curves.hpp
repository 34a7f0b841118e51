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

/// Measured curves of one link.
struct LinkCurves {
  NodeIndex from = 0;              ///< memory
  NodeIndex to = 0;                ///< memory
  model::TransferModel times = {};  ///< by size: alone, and `loaded` while all other links copy the same size
  model::TransferCurve beside_messages = {};  ///< by size, while large messages come and go

  /// Rate of copies of so many bytes in GB/s; none: not measured.
  static std::optional<double> rate(const model::TransferCurve& curve, std::size_t bytes);
  /// Rates of large copies, alone and, if known, under load and beside messages, by the affine laws of the largest
  /// sizes, with the latency that then gives the time of the smallest one. None: fewer than two sizes are known.
  std::optional<MachineLink> link() const;
};

/// Options of a measurement.
struct LinkCurveOptions {
  std::vector<std::size_t> sizes{4'096, 16'384, 65'536, 262'144, 1 << 20, 4 << 20, 16 << 20};  ///< bytes, ascending
  std::int64_t most_ns = 30'000'000'000;  ///< limit of the whole time, approximately
  unsigned copies = 29;                   ///< copies of each size, if the time suffices
  std::function<void(int core)> bind = {};  ///< binds the calling thread; empty: threads run anywhere
  /// Called before each of `steps` steps, by the measuring thread.
  std::function<void(unsigned step, unsigned steps, std::string_view what)> progress = {};
};

/// Measures all links that one copy uses: between main memory, NUMA nodes, storage, and memories of devices. Each link
/// has its own memory and a thread, on a core of a worker of the target memory, if one is bound there. It omits sizes
/// that do not fit well into a budget or get too few copies in the time, and links whose copies fail or find no memory.
/// Before the runtime begins; the world's machine stays unchanged.
///
/// Threads: one at a time calls it. It measures nothing while there is traffic.
class LinkMeter {
 public:
  /// Takes the memory for the copies. `world` outlives it.
  LinkMeter(World& world, LinkCurveOptions options);
  ~LinkMeter();  ///< traffic must have stopped
  LinkMeter(const LinkMeter&) = delete;
  LinkMeter& operator=(const LinkMeter&) = delete;

  bool has_links() const noexcept;  ///< whether there is something to measure

  /// Measures each link alone, then all at once, repeatedly, until each has its `copies`.
  void measure();
  /// Measures each link alone while the caller sends and receives messages.
  void measure_beside_messages();

  /// Starts to copy `bytes`, or what fits, over all links, repeatedly.
  void start_traffic(std::size_t bytes);
  /// Stops the traffic; without effect if there is none.
  void stop_traffic() noexcept;

  /// Curves measured so far.
  std::vector<LinkCurves> curves() const;

 private:
  class Measurement;
  const std::unique_ptr<Measurement> measurement_;
};

/// Replaces links of `machine` by those of `curves`, as far as enough is known of them.
void take_links(Machine& machine, std::span<const LinkCurves> curves);

/// Measures with `LinkMeter::measure` alone.
std::vector<LinkCurves> measure_link_curves(World& world, const LinkCurveOptions& options = {});

}  // namespace tandem::runtime
