// tests/random_flow/divided.cpp: a datum of a random flow is divided into parts for a while, which tasks use beside the
// whole.
#include <algorithm>
#include <utility>

#include "random_flow.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::random_flow {

namespace {

struct LeavesScope {};

template <class Kind>
constexpr bool is_matrix = false;
template <>
constexpr bool is_matrix<Matrix<Word>> = true;

}  // namespace

/// The partitions of a datum, and what the interpreter knows of them.
template <class Kind>
struct RandomFlow::Divided {
  enum class State : std::uint8_t { idle, reading, writing };
  struct One {
    Parts<Kind> parts;
    std::vector<Model::PartPlace> places;
    bool has_halo = false;
    State state = State::idle;
  };

  /// Before a use of a part of `used`, or, if that is null, of the whole.
  void prepare(Model& model, unsigned whole, One* used, bool writes) {
    if (used != nullptr && (used->state == State::writing || (used->state == State::reading && !writes))) return;
    for (One& one : all) {
      if (one.state == State::writing) model.gather(whole, one.places);
      if (one.state == State::writing || writes) one.state = State::idle;
    }
    if (used == nullptr) return;
    model.split(whole, used->places);
    used->state = writes ? State::writing : State::reading;
  }

  std::vector<One> all;
};

void RandomFlow::divide() {
  std::swap(random_, random_of_parts_);
  const unsigned number = pick_slot();
  const Model::Datum& model = model_.datum(number);
  if (model.has_value && model.rows > 0 && model.cols > 0) {
    if (const auto* const vector = std::get_if<Data<Vector<Word>>>(&data_[number].data))
      play_divided(number, Data<Vector<Word>>(*vector));
    else if (const auto* const matrix = std::get_if<Data<Matrix<Word>>>(&data_[number].data))
      play_divided(number, Data<Matrix<Word>>(*matrix));
  }
  std::swap(random_, random_of_parts_);
}

template <class Kind>
void RandomFlow::draw_partition(unsigned whole, const Data<Kind>& data, Divided<Kind>& divided) {
  const std::size_t rows = model_.datum(whole).rows, cols = model_.datum(whole).cols;
  Partition partition;
  if (!is_matrix<Kind> || chance(60))
    (chance(50) ? partition.rows : partition.row_parts) = 1 + draw(static_cast<unsigned>(rows));
  else partition.cols = 1 + draw(static_cast<unsigned>(cols));
  if (is_matrix<Kind> && partition.cols == 0 && chance(50)) partition.col_parts = 1 + draw(static_cast<unsigned>(cols));
  const bool has_halo = partition.row_parts != 0 && partition.row_parts <= rows && chance(40);
  if (has_halo) partition.halo_rows = 1;
  divided.all.push_back({player_.runtime().parts(data, partition), {}, has_halo});
  auto& one = divided.all.back();
  for (std::size_t j = 0; j < one.parts.cols(); ++j)
    for (std::size_t i = 0; i < one.parts.rows(); ++i) {
      runtime::Handle& part = *one.parts(i, j).handle();
      const PartCore core = one.parts.core(i, j);
      const unsigned number = model_.add(part.shape.rows, part.shape.cols, false);
      data_.emplace_back().registered = false;  // nobody else uses it
      part.name = std::to_string(number);       // as the player knows data
      one.places.push_back({number, core.whole_row - core.row, core.whole_col - core.col});
    }
}

/// A task, or a look, of the whole or of a part.
template <class Kind>
void RandomFlow::use_divided(unsigned whole, const Data<Kind>& data, Divided<Kind>& divided) {
  auto* const one = chance(25) ? nullptr : &divided.all[draw(static_cast<unsigned>(divided.all.size()))];
  const unsigned place = one != nullptr ? draw(static_cast<unsigned>(one->places.size())) : 0;
  const Data<Kind>& used = one != nullptr ? one->parts(place % one->parts.rows(), place / one->parts.rows()) : data;
  const unsigned number = one != nullptr ? one->places[place].number : whole;
  if (chance(15)) {
    divided.prepare(model_, whole, one, false);
    Failure* const failure = model_.see(number);
    return expect(failure, "acquire of what is divided", [&] {
      auto access = player_.runtime().acquire(read(used));
      compare(number, Player::cells_of(used.handle()->home, used.handle()->shape), "while it is divided");
    });
  }
  static constexpr AccessMode kModes[] = {AccessMode::read, AccessMode::write, AccessMode::read_write,
                                          AccessMode::commute};
  const AccessMode mode = one != nullptr && one->has_halo ? AccessMode::read : kModes[draw(4)];
  std::vector<Use> uses{{mode, number}};
  std::vector<runtime::Handle*> handles{used.handle()};
  if (const unsigned other = pick_slot(); other != whole && model_.datum(other).has_value && chance(40)) {
    uses.push_back({AccessMode::read, other});
    handles.push_back(Player::handle_of(data_[other].data));
  }
  TaskSpec& spec = draw_task(uses, "p" + std::to_string(specs_.size()), false);
  divided.prepare(model_, whole, one, mode != AccessMode::read);
  internal::about_to_use(used.handle(), mode != AccessMode::read);
  const unsigned key = ++keys_;
  model_.note_end(key, model_.run(spec, uses, spec.factor, spec.fault, nullptr));
  done_.push_back({player_.submit(spec, handles, {}), key});
}

template <class Kind>
void RandomFlow::play_divided(unsigned whole, const Data<Kind>& data) {
  try {
    Divided<Kind> divided;
    struct Gathered {  // as the parts are when they end
      RandomFlow& flow;
      unsigned whole;
      Divided<Kind>& divided;
      ~Gathered() { divided.prepare(flow.model_, whole, nullptr, true); }
    };
    for (unsigned count = 1 + draw(2); count > 0; --count) draw_partition(whole, data, divided);
    const Gathered gathered{*this, whole, divided};
    for (unsigned left = 2 + draw(9); left > 0; --left) {
      use_divided(whole, data, divided);
      if (chance(8)) wait_for_all();
      if (chance(50)) player_.breathe(6);
    }
    if (chance(40)) throw LeavesScope();
  } catch (const LeavesScope&) {
  }
}

}  // namespace tandem::random_flow
