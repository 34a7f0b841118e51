// tests/random_flow/random_flow.hpp: one random flow, played on a runtime and on the sequential interpreter side by
// side.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model.hpp"
#include "player.hpp"

namespace tandem::random_flow {

/// A setup with everything drawn from `seed`.
FlowSetup draw_setup(std::uint64_t seed, bool threads);

/// What came of a flow.
struct Outcome {
  std::string mistake;             ///< empty: the runtime did what the interpreter says
  std::vector<unsigned> order;     ///< of the tasks that ran; on the event loop
};

class RandomFlow {
 public:
  explicit RandomFlow(const FlowSetup& setup);
  /// Submits about `length` times, waits, and compares everything.
  Outcome play(unsigned length);

 private:
  /// What can be waited for and come before other tasks.
  struct Done {
    TaskRef ref;
    unsigned key = 0;
  };
  struct RecordedTask {
    TaskSpec* spec = nullptr;
    std::vector<Use> uses;        ///< as bound for the next replay
    Word factor = 0;
    Fault fault = Fault::none;
    std::vector<unsigned> after;  ///< indices in the recording
    TaskRef ref;
  };
  struct PlayedGraph {
    Graph graph;
    std::vector<RecordedTask> tasks;
  };

  struct Mistake {
    std::string text;
  };

  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  bool chance(unsigned percent) { return draw(100) < percent; }
  Mistake mistake(const std::string& text) const { return {text}; }
  void step(unsigned left);

  unsigned add_datum(std::vector<Word>* memory, const PlayedDatum* like);
  unsigned pick_slot() { return slots_[draw(static_cast<unsigned>(slots_.size()))]; }
  std::vector<Use> draw_uses(const std::vector<bool>& has_value);
  TaskSpec& draw_task(const std::vector<Use>& uses, const std::string& label, bool recorded);
  std::vector<bool> values_now() const;
  std::vector<Done> draw_predecessors(Failure** failure);

  void submit_kernel();
  void submit_event();
  void acquire(bool hold);
  void release_held();
  void wait_for_all();
  void wait_for_task();
  void wait_for_data();
  void register_again();
  void replace_data();
  void copy_handles();
  void divide();
  template <class Kind>
  struct Divided;
  template <class Kind>
  void play_divided(unsigned whole, const Data<Kind>& data);
  template <class Kind>
  void draw_partition(unsigned whole, const Data<Kind>& data, Divided<Kind>& divided);
  template <class Kind>
  void use_divided(unsigned whole, const Data<Kind>& data, Divided<Kind>& divided);
  void record();
  void replay();
  void change_graph();
  void drop_graph();
  bool can_replay(const PlayedGraph& graph) const;

  /// Runs `action`; it throws exactly what the interpreter says.
  void expect(Failure* failure, const char* what, const std::function<void()>& action);
  void compare(unsigned number, const Cells& cells, const char* when);
  void compare_counts();
  void finish();

  FlowSetup setup_;
  std::mt19937_64 random_;
  std::mt19937_64 random_of_parts_;  ///< their own, so that a seed's flow is else the same without them
  Model model_;
  std::deque<TaskSpec> specs_;
  std::deque<std::vector<Word>> memories_;
  std::deque<PlayedDatum> data_;  // by number, as in the model
  std::vector<unsigned> slots_;   // the data that the program knows now
  Player player_;
  std::vector<Done> done_;
  std::vector<std::unique_ptr<PlayedGraph>> graphs_;
  std::optional<Acquired<Word&>> held_scalar_;
  std::optional<Acquired<std::span<Word>>> held_vector_;
  unsigned hold_left_ = 0;
  unsigned keys_ = 0;
  unsigned recordings_ = 0;
  unsigned registered_ = 0;
};

}  // namespace tandem::random_flow
