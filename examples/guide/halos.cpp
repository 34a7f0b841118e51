// examples/guide/halos.cpp: docs/guide/data.md: parts with halos.
#include <array>
#include <cstdio>
#include <span>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);

  // Heat goes along a rod: each element becomes the mean of itself and its neighbours. Parts with a halo are read,
  // parts without one are written.
  std::vector<double> rod(1000, 0.0), next(1000, 0.0);
  rod[250] = 9;
  const std::array fields{rt.data("rod", rod), rt.data("next", next)};
  std::vector<tandem::Parts<tandem::Vector<double>>> seen, made;
  for (const auto& field : fields) {
    seen.push_back(rt.parts(field, {.row_parts = 4, .halo_rows = 1}));
    made.push_back(rt.parts(field, {.row_parts = 4}));
  }
  for (std::size_t step = 0; step < 2; ++step)
    for (std::size_t k = 0; k < 4; ++k)
      rt.submit("smooth", [](tandem::PartCore core, std::span<const double> from, std::span<double> to) {
        for (std::size_t i = 0; i < core.rows; ++i) {
          const std::size_t at = core.row + i;  // element i of the core; before it lies the halo, but in the first part
          const double before = at > 0 ? from[at - 1] : from[at],
                       behind = at + 1 < from.size() ? from[at + 1] : from[at];
          to[i] = (before + from[at] + behind) / 3;
        }
      }, seen[step % 2].core(k), read(seen[step % 2](k)), write(made[(step + 1) % 2](k)));
  rt.wait(fields[0]);
  std::printf("rod: %g %g %g %g\n", rod[249], rod[250], rod[251], rod[252]);
}
