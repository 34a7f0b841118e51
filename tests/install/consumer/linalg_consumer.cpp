// tests/install/consumer/linalg_consumer.cpp: the smallest program that uses the linear algebra.
#include <tandem/linalg.hpp>
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  using namespace tandem::linalg;
  tandem::Runtime rt(argc, argv);
  TileMatrix<double> a({.rows = 100, .cols = 100, .tile = 32, .uplo = Uplo::lower});
  TiledData<double> ha(rt, "A", a);
  generate(rt, RandomPositiveDefinite{.seed = 1, .order = 100}, ha);
  return potrf(rt, Uplo::lower, ha) == 0 ? 0 : 1;
}
