// tests/random_flow/player.hpp: the runtime's side of a random flow: its data, tasks, events, and what is checked while
// they run.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "arithmetic.hpp"
#include "fake_network.hpp"
#include "tandem/device.hpp"
#include "tandem/tandem.hpp"

namespace tandem::random_flow {

using Word = std::uint64_t;
using AnyData = std::variant<Data<Word>, Data<Vector<Word>>, Data<Matrix<Word>>>;
enum class DatumKind : std::uint8_t { scalar, vector, matrix };

/// In which world a flow runs.
struct FlowSetup {
  std::uint64_t seed = 1;
  bool threads = false;
  unsigned workers = 2;
  unsigned devices = 0;
  unsigned depth = 0;       ///< tasks that a device may have in flight; 0: their workers run the kernels
  unsigned stretch = 1;     ///< tasks in a lane of a device, at most; 1: devices do not say that theirs are in order
  bool device_faults = false;
  bool devices_at_home = false;  ///< devices work in main memory
  bool refuses_memory = false;   ///< the memories of devices have none left now and then; no task is for devices alone
  std::string sched = "lws";
  std::uint64_t window = 32'768;
  unsigned tasks_per_step = 1;
  bool caller_works = true;
  std::size_t device_bytes = 0;  ///< budget of each device's memory; 0: no limit
  std::size_t main_bytes = 0;    ///< of main memory
  unsigned numa_nodes = 1;       ///< memories over which the workers are spread
  bool limited() const { return device_bytes != 0 || main_bytes != 0; }
  std::string described() const;
};

/// Values of a task whose accesses are set by hand: trivial ones, and one that must be constructed, copied and
/// destroyed.
struct Values {
  TaskSpec* spec = nullptr;
  Word factor = 0;
  Fault fault = Fault::none;
  std::string tag;
};

/// Notices when tasks use a datum at the same time that must not. Any thread.
class Guards {
 public:
  explicit Guards(std::size_t count) : users_(count) {}
  void begin_reading(unsigned datum);
  void begin_writing(unsigned datum);
  void end_reading(unsigned datum) { users_[datum].fetch_sub(1); }
  void end_writing(unsigned datum) { users_[datum].store(0); }
  void write_to_read(unsigned datum) { users_[datum].store(1); }
  void note_broken() { broken_.fetch_add(1); }
  unsigned broken() const { return broken_.load(); }

 private:
  static constexpr int kWriting = -1'000'000;
  std::vector<std::atomic<int>> users_;
  std::atomic<unsigned> broken_{0};
};

/// One piece of data, while it is registered and after.
struct PlayedDatum {
  DatumKind kind = DatumKind::scalar;
  std::size_t rows = 1;
  std::size_t cols = 1;
  std::size_t ld = 1;
  bool owned = false;
  bool registered = true;
  std::vector<Word>* memory = nullptr;  ///< the user's
  AnyData data;
  Cells home() const { return {memory->data(), rows, cols, ld}; }
};

class Player {
 public:
  explicit Player(const FlowSetup& setup);
  ~Player();

  Runtime& runtime() { return *runtime_; }
  Guards& guards() { return guards_; }
  /// Lets the event loop go on a little; nothing on threads.
  void breathe(unsigned most);

  AnyData add(const PlayedDatum& datum, unsigned number);
  TaskRef submit(TaskSpec& spec, const std::vector<runtime::Handle*>& handles, const std::vector<TaskRef>& after);
  /// With the types that a user's program has. For one use, or a `read` and one more that is no read.
  TaskRef submit_typed(TaskSpec& spec, const std::vector<const AnyData*>& data, const std::vector<TaskRef>& after);
  static bool can_be_typed(const std::vector<Use>& uses);
  TaskRef submit_event(TaskSpec& spec, const std::vector<const AnyData*>& data, Release release, unsigned manner);
  static void change(Graph& graph, const TaskRef& task, const Values& values) { graph.set_values(task, values); }

  /// Numbers of the tasks in the order in which they ran; on the event loop only.
  const std::vector<unsigned>& order() const { return order_; }
  void note_run(TaskSpec& spec);
  void check_worker(const runtime::KernelCall& call) const;
  void check_private_copies(const runtime::KernelCall& call, const std::vector<Use>& uses) const;

  static runtime::Handle* handle_of(const AnyData& data);
  static unsigned number_of(const runtime::Handle& handle) { return static_cast<unsigned>(std::stoul(handle.name)); }
  static Cells cells_of(const runtime::Replica& replica, const runtime::Shape& shape) {
    return {static_cast<Word*>(replica.pointer), shape.rows, shape.cols, replica.ld};
  }
  /// Gone before the data that users still hold.
  void end();

 private:
  template <class... Accesses>
  TaskRef submit_with(TaskSpec& spec, const std::vector<TaskRef>& after, const Accesses&... accesses);
  template <class... Accesses>
  TaskRef start_event(TaskSpec& spec, Release release, unsigned manner, const std::vector<runtime::Handle*>& handles,
                      const Accesses&... accesses);
  std::unique_ptr<runtime::Device> make_device(unsigned number);

  FlowSetup setup_;
  Guards guards_{4096};
  std::unique_ptr<FakeNetwork> network_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<std::shared_ptr<runtime::CodeletCore>> codelets_;
  std::vector<unsigned> order_;
};

}  // namespace tandem::random_flow
