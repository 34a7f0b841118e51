// tests/compile_fail/cases.cpp: wrong calls, one for each value of CASE, that the compiler refuses in our words; CASE 0 is right.
#include <memory>
#include <vector>

#include "tandem/tandem.hpp"

using namespace tandem;

void wrong(Runtime& rt, Data<double>& scalar, Data<Vector<double>>& vector, Data<Matrix<double>>& matrix) {
  [[maybe_unused]] const Codelet on_scalar("on scalar", [](double&) {});
  [[maybe_unused]] const Codelet on_vector("on vector", [](std::span<double>) {});
  [[maybe_unused]] const Codelet on_matrix("on matrix", [](double, MatrixView<const double>) {});
#if CASE == 0
  rt.submit(on_scalar, read_write(scalar));
  rt.submit(on_vector, write(vector));
  rt.submit(on_matrix, 1.0, read(matrix));
#elif CASE == 1  // a kernel that writes, on data that is read
  rt.submit(on_vector, read(vector));
#elif CASE == 2  // another kind of data
  rt.submit(on_scalar, read_write(vector));
#elif CASE == 3  // a value is missing
  rt.submit(on_matrix, read(matrix));
#elif CASE == 4  // an access too many
  rt.submit(on_scalar, read_write(scalar), read(vector));
#elif CASE == 5  // data itself instead of a use of it
  rt.submit(on_scalar, scalar);
#elif CASE == 6  // another type of element
  rt.submit(Codelet("floats", [](std::span<const float>) {}), read(vector));
#elif CASE == 7  // one of two implementations does not fit
  rt.submit(on_scalar.also(DeviceKind::user, [](std::span<double>) {}), write(scalar));
#elif CASE == 8  // data that cannot be moved as bytes
  std::shared_ptr<int> pointer;
  auto data = rt.data("pointer", pointer);
  rt.submit(Codelet("k", [](const std::shared_ptr<int>&) {}), read(data));
#elif CASE == 9  // values that do not fit into a task
  struct Large {
    char bytes[8192];
  };
  rt.submit(Codelet("k", [](const Large&) {}), Large{});
#elif CASE == 10  // the application cannot take part in a group
  static_cast<void>(rt.acquire(commute(scalar)));
#elif CASE == 11  // an event neither
  static_cast<void>(rt.event("e", Release::with_readable, {}, reduce(scalar)));
#endif
}
