// tests/install/consumer/consumer.cpp: the smallest program that uses the installed package.
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  double x = 1.0;
  auto hx = rt.data("x", x);
  tandem::Codelet twice("twice", [](double& value) { value *= 2; });
  for (int i = 0; i < 10; ++i) rt.submit(twice, read_write(hx));
  rt.wait(hx);
  return x == 1024.0 ? 0 : 1;
}
