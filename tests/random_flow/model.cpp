// tests/random_flow/model.cpp: the sequential interpreter.
#include "model.hpp"

#include <algorithm>

namespace tandem::random_flow {

namespace {
bool in_group(AccessMode mode) { return mode == AccessMode::commute || mode == AccessMode::reduce; }
}  // namespace

unsigned Model::add(std::size_t rows, std::size_t cols, bool has_value) {
  Datum& datum = data_.emplace_back();
  datum.rows = rows;
  datum.cols = cols;
  datum.cells.assign(rows * cols, 0);
  datum.has_value = has_value;
  return static_cast<unsigned>(data_.size() - 1);
}

Failure* Model::look(const Use& use) {
  Datum& datum = data_[use.datum];
  if (in_group(use.mode)) return datum.in_group ? nullptr : datum.poison;
  if (!sees_value(use.mode)) return nullptr;
  datum.in_group = false;
  return datum.poison;
}

void Model::spoil(const std::vector<Use>& uses, Failure* failure) {
  for (const Use& use : uses) {
    Datum& datum = data_[use.datum];
    if (in_group(use.mode)) {
      if (datum.poison != nullptr && !datum.in_group) continue;
      datum.poison = earliest(datum.poison, failure);
      datum.in_group = true;
    } else if (makes_value(use.mode)) {
      datum.poison = failure;
      datum.in_group = false;
    }
  }
}

Failure* Model::run(TaskSpec& spec, const std::vector<Use>& uses, std::uint64_t factor, Fault fault, Failure* after) {
  ++now_;
  for (const Use& use : uses)
    if (use.mode != AccessMode::reduce && use.mode != AccessMode::scratch) close(use.datum);
  // A task that names a datum twice, once to read and once to write, sees it.
  std::vector<Use> merged = uses;
  for (Use& a : merged)
    for (const Use& b : uses)
      if (a.datum == b.datum && a.mode == AccessMode::write && sees_value(b.mode)) a.mode = AccessMode::read_write;

  Failure* cause = after;
  for (const Use& use : merged) cause = earliest(cause, look(use));
  for (const Use& use : merged) {
    Datum& datum = data_[use.datum];
    if (makes_value(use.mode)) datum.has_value = true;
    if (use.mode == AccessMode::reduce) datum.reducing = true;
  }
  if (cause != nullptr) {
    cause->last_cancelled = now_;
    spoil(merged, cause);
    return cause;
  }
  if (spec.fails_on_devices()) fault = Fault::before;
  else ++spec.expected_runs;
  if (fault == Fault::none || fault == Fault::callback) {
    std::vector<Cells> cells;
    std::deque<std::vector<std::uint64_t>> scratch;
    for (const Use& use : uses) {
      Cells view = data_[use.datum].view();
      if (use.mode == AccessMode::scratch) view.data = scratch.emplace_back(view.size()).data();
      cells.push_back(view);
    }
    compute(uses, factor, Fault::none, spec.label, cells);
    if (spec.with_callback) ++spec.expected_callbacks;
  }
  if (fault != Fault::none) {
    Failure& failure = failures_.emplace_back();
    failure.label = spec.label;
    failure.position = now_;
    spoil(merged, &failure);
    return &failure;
  }
  for (const Use& use : merged) {
    if (!makes_value(use.mode) || use.mode == AccessMode::commute) continue;
    data_[use.datum].poison = nullptr;
    data_[use.datum].in_group = false;
  }
  return nullptr;
}

Failure* Model::close(unsigned number) {
  Datum& datum = data_[number];
  if (!datum.reducing) return nullptr;
  datum.reducing = false;
  datum.in_group = false;
  if (datum.poison != nullptr) datum.poison->last_cancelled = now_;
  return datum.poison;
}

void Model::close_all() {
  for (unsigned number = 0; number < data_.size(); ++number) close(number);
}

template <class Move>
void Model::for_each_cell(unsigned whole, const PartPlace& part, const Move& move) {
  Datum& of_whole = data_[whole];
  Datum& of_part = data_[part.number];
  for (std::size_t j = 0; j < of_part.cols; ++j)
    for (std::size_t i = 0; i < of_part.rows; ++i)
      move(of_whole.cells[part.row + i + (part.col + j) * of_whole.rows], of_part.cells[i + j * of_part.rows]);
}

void Model::split(unsigned whole, const std::vector<PartPlace>& parts) {
  ++now_;
  close(whole);
  data_[whole].in_group = false;
  for (const PartPlace& part : parts) {
    Datum& datum = data_[part.number];
    datum.has_value = data_[whole].has_value;
    datum.poison = data_[whole].poison;
    datum.in_group = false;
    for_each_cell(whole, part, [](std::uint64_t of_whole, std::uint64_t& of_part) { of_part = of_whole; });
  }
}

void Model::gather(unsigned whole, const std::vector<PartPlace>& parts) {
  Datum& datum = data_[whole];
  datum.poison = nullptr;
  datum.in_group = false;
  for (const PartPlace& part : parts) {
    data_[part.number].in_group = false;
    datum.poison = earliest(datum.poison, data_[part.number].poison);
    for_each_cell(whole, part, [](std::uint64_t& of_whole, std::uint64_t of_part) { of_whole = of_part; });
  }
}

Failure* Model::wait_all() {
  ++now_;
  close_all();
  ends_.clear();
  Failure* due = nullptr;
  for (Failure& failure : failures_) {
    if (failure.thrown_until == 0 || failure.last_cancelled > failure.thrown_until) due = earliest(due, &failure);
    failure.thrown_until = now_;
  }
  return due;
}

Failure* Model::throws(Failure* failure) {
  ++now_;
  if (failure != nullptr) failure->thrown_until = now_;
  return failure;
}

Failure* Model::see(unsigned number) {
  ++now_;
  close(number);
  data_[number].in_group = false;
  return throws(data_[number].poison);
}

void Model::overwrite(unsigned number) {
  ++now_;
  close(number);
  data_[number].poison = nullptr;
  data_[number].in_group = false;
  data_[number].has_value = true;
}

Failure* Model::end_of(unsigned key) const {
  const auto at = ends_.find(key);
  return at == ends_.end() ? nullptr : at->second;
}

}  // namespace tandem::random_flow
