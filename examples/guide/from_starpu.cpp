// examples/guide/from_starpu.cpp: docs/guide/from-starpu.md: a codelet, two vectors, one task; filters; a sparse
// matrix.
#include <cstdio>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  std::vector<float> x(1024, 1.0F), y(1024, 2.0F);

  const tandem::Codelet axpy("axpy", [](float a, std::span<const float> from, std::span<float> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += a * from[i];
  });
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);
  rt.submit({.priority = 1}, axpy, 3.0F, read(hx), read_write(hy));
  rt.wait();
  hx.unregister();
  hy.unregister();

  std::printf("y[0] = %g\n", y[0]);

  // Filters and sub-data: parts in place of starpu_data_partition and starpu_data_get_sub_data.
  std::vector<float> image(64 * 48, 1.0F);
  auto himage = rt.data("image", tandem::MatrixView<float>{image.data(), 64, 48, 64});
  {
    auto tiles = rt.parts(himage, {.rows = 16, .cols = 16});  // 4 x 3 tiles
    rt.submit("brighten", [](tandem::MatrixView<float> tile) {
      for (std::size_t j = 0; j < tile.cols; ++j)
        for (std::size_t i = 0; i < tile.rows; ++i) tile(i, j) += 1;
    }, read_write(tiles(3, 2)));
  }

  // A sparse matrix in compressed rows, in place of starpu_csr_data_register: three vectors, which tasks read together.
  const std::vector<std::size_t> starts{0, 2, 4, 6}, columns{0, 2, 1, 2, 0, 2};
  const std::vector<double> values{2, 4, 3, 3, 1, 4};
  const std::vector<double> v{1, 2, 3};
  std::vector<double> z(3);
  auto hstarts = rt.data("row starts", starts);
  auto hcolumns = rt.data("columns", columns);
  auto hvalues = rt.data("values", values);
  auto hv = rt.data("v", v);
  auto hz = rt.data("z", z);
  rt.submit("multiply", [](std::span<const std::size_t> start, std::span<const std::size_t> column,
                           std::span<const double> value, std::span<const double> from, std::span<double> sum) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = 0;
      for (std::size_t k = start[i]; k < start[i + 1]; ++k) sum[i] += value[k] * from[column[k]];
    }
  }, read(hstarts), read(hcolumns), read(hvalues), read(hv), write(hz));
  rt.wait();

  std::printf("z = %g %g %g\n", z[0], z[1], z[2]);
}
