// examples/guide/linear_algebra.cpp: docs/guide/linear-algebra.md: systems of equations, least squares, flows of one's
// own on tiles.
#include <cmath>
#include <cstdio>
#include <vector>

#include <tandem/linalg.hpp>
#include <tandem/tandem.hpp>

using namespace tandem::linalg;

// Any type with such a function gives the elements of a matrix: here a covariance that falls with the distance.
struct Covariance {
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const {
    const double distance = std::abs(double(i) - double(j)) / 50;
    return T(std::exp(-distance) + (i == j ? 0.1 : 0));
  }
};

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);

  // A x = b with a symmetric positive definite A of order 1000 in tiles of 256. Only the lower triangle is stored.
  constexpr std::size_t n = 1000;
  const auto grid = Distribution::block_cyclic(Distribution::squarest(rt.size()));  // on one rank: all here
  const std::uint32_t me = rt.rank();
  TileMatrix<double> a({.rows = n, .cols = n, .tile = 256, .uplo = Uplo::lower, .distribution = grid, .rank = me});
  TileMatrix<double> b({.rows = n, .cols = 1, .tile = 256, .distribution = grid, .rank = me});
  {
    TiledData<double> ha(rt, "A", a), hb(rt, "b", b);  // a handle for each tile
    generate(rt, Covariance{}, ha);
    generate(rt, RandomGeneral{.seed = 1}, hb);
    const std::size_t info = posv(rt, Uplo::lower, ha, hb);  // A becomes its Cholesky factor, b the solution
    if (info != 0) std::printf("the leading minor of order %zu is not positive definite\n", info);

    // The solution in one piece, on every rank.
    std::vector<double> x(n);
    gather(rt, hb, tandem::MatrixView<double>{x.data(), n, 1, n});
    double residual = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += Covariance{}.element<double>(i, j) * x[j];
      residual = std::max(residual, std::abs(sum - RandomGeneral{.seed = 1}.element<double>(i, 0)));
    }
    if (me == 0) std::printf("solved: %s\n", residual < 1e-9 ? "yes" : "no");

    // Tasks of your own use tiles as any other data: the logarithm of the determinant, from the diagonal of the factor.
    double log_determinant = 0;
    auto sum = rt.data("log det", log_determinant, {.owner = 0});
    for (std::size_t k = 0; k < ha.row_tiles(); ++k)
      rt.submit("add log det", [](tandem::MatrixView<const double> tile, double& total) {
        for (std::size_t i = 0; i < tile.rows; ++i) total += 2 * std::log(tile(i, i));
      }, read(ha(k, k)), read_write(sum));
    rt.wait();
    if (me == 0) std::printf("log det = %.3f\n", log_determinant);
  }

  // Several flows before one wait: the second begins on tiles that the first one has finished.
  TileMatrix<double> c({.rows = n, .cols = n, .tile = 256, .distribution = grid, .rank = me});
  TileMatrix<double> d({.rows = n, .cols = n, .tile = 256, .distribution = grid, .rank = me});
  {
    TiledData<double> hc(rt, "C", c), hd(rt, "D", d);
    submit_generate(rt, RandomGeneral{.seed = 2}, hc);
    submit_gemm(rt, Op::no_trans, Op::trans, 1.0, hc, hc, 0.0, hd);  // D := C C^T
    rt.wait();
  }

  // A matrix that you have in LAPACK's format, cut into tiles; and back.
  std::vector<double> lapack(n * n, 1.0);
  TileMatrix<double> tiles = TileMatrix<double>::from_lapack({lapack.data(), n, n, n}, {.tile = 256});
  tiles.to_lapack({lapack.data(), n, n, n});
}
