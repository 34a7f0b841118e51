// tests/compile_fail/cases.cpp: wrong calls, one for each value of CASE, that the compiler refuses in our words; CASE 0
// is right.
#include <memory>
#include <string>
#include <string_view>
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
  std::vector<std::string> lines;
  auto object = rt.object("lines", lines, {.owner = 0, .bytes = 1000});
  rt.submit(Codelet("on object", [](std::vector<std::string>& to) { to.emplace_back(); }), read_write(object));
  static_cast<void>((*rt.acquire(read(rt.object<std::string>("text")))).size());
  rt.submit("scale", [](double, std::span<double>) {}, 2.0, read_write(vector));
  rt.submit([](const Context&, MatrixView<const double>) {}, read(matrix), TaskOptions{.priority = 1});
  const std::vector<double> fixed(10, 1.0);
  const double number = 2;
  auto data_of_fixed = rt.data("fixed", fixed);
  auto span_of_fixed = rt.data("span", std::span<const double>(fixed).first(0), {.owner = 0});
  auto data_of_number = rt.data(number);
  auto matrix_of_fixed = rt.data("matrix", MatrixView<const double>{nullptr, 0, 0, 0});
  rt.submit([](std::span<const double>, const double&, MatrixView<const double>) {}, read(data_of_fixed),
            read(data_of_number), read(matrix_of_fixed));
  rt.submit([](std::span<const double>) {}, read(span_of_fixed));
  static_cast<void>((*rt.acquire(read(data_of_fixed))).size());
  const std::vector<Data<Vector<double>>> list{vector};
  rt.submit([](Each<std::span<const double>>, double, Each<std::span<double>>) {}, read(list), 1.0, write(list));
#elif CASE == 27  // a list is no vector
  const std::vector<Data<Vector<double>>> list{vector};
  rt.submit(on_vector, write(list));
#elif CASE == 28  // what is read is not written
  const std::vector<Data<Vector<double>>> list{vector};
  rt.submit([](Each<std::span<double>>) {}, read(list));
#elif CASE == 29  // nor a list of constants
  const std::vector<Data<const double>> list(2);
  rt.submit([](Each<double&>) {}, write(list));
#elif CASE == 30  // the second of three
  rt.submit("third", [](double, std::span<double>, const double&) {}, 1.0, read(vector), read(scalar));
#elif CASE == 31  // data itself behind a value
  rt.submit("bare", [](double, std::span<const double>) {}, 1.0, vector);
#elif CASE == 32  // a list of data itself
  const std::vector<Data<Vector<double>>> list{vector};
  rt.submit("bare", [](Each<std::span<const double>>) {}, list);
#elif CASE == 33  // a kernel whose parameters nobody knows
  struct Overloaded {
    void operator()(std::span<float>) const {}
    void operator()(float&) const {}
  };
  rt.submit("overloaded", Overloaded(), write(vector));
#elif CASE == 34  // a function, and a Context that is not counted
  rt.submit("function", +[](const Context&, double, double&) {}, write(scalar));
#elif CASE == 20  // a pointer that is a variable
  double* pointer = nullptr;
  auto data = rt.data("pointer", pointer);
#elif CASE == 21  // a pointer that a call returns
  std::vector<double> values(3);
  auto data = rt.data("pointer", values.data());
#elif CASE == 22  // refused where it is registered, used or not
  std::vector<std::string> strings;
  auto data = rt.data("strings", strings);
#elif CASE == 23  // data over const memory is read only
  const std::vector<double> fixed(3);
  auto data = rt.data("fixed", fixed);
  rt.submit(on_vector, write(data));
#elif CASE == 24
  const double number = 1;
  auto data = rt.data("number", number);
  rt.submit(on_scalar, read_write(data));
#elif CASE == 25  // ends with the call
  auto data = rt.data("temporary", std::vector<double>(3));
#elif CASE == 26
  const double number = 1;
  auto data = rt.data("number", number);
  rt.receive(data, 0);
#elif CASE == 17  // a kernel that changes itself
  rt.submit(Codelet("counts", [n = 0](double& to) mutable { to = ++n; }), write(scalar));
#elif CASE == 18  // the same, submitted as it is
  rt.submit("counts", [n = 0](double& to) mutable { to = ++n; }, write(scalar));
#elif CASE == 19  // a lambda that does not fit
  rt.submit("floats", [](std::span<float>) {}, write(vector));
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
#elif CASE == 12  // an object whose type says nothing of how it travels
  std::shared_ptr<int> shared;
  static_cast<void>(rt.object("shared", shared));
#elif CASE == 13  // an object whose bytes mean nothing elsewhere
  std::vector<std::string_view> words;
  static_cast<void>(rt.object("words", words));
#elif CASE == 14  // an object that cannot begin empty
  struct Full {
    explicit Full(int) {}
  } full(1);
  static_cast<void>(rt.object("full", full));
#elif CASE == 15  // scratch has no value
  static_cast<void>(scratch(rt.object<std::string>("text")));
#elif CASE == 16  // elements that cannot be moved as bytes
  std::vector<std::string> strings;
  auto data = rt.data("strings", strings);
  rt.submit(Codelet("k", [](std::span<const std::string>) {}), read(data));
#endif
}
