// benchmarks/device/tiled.hpp: a tiled matrix whose tiles devices copy by themselves.
#pragma once

#include <cstddef>
#include <tandem/linalg.hpp>
#include <tandem/tandem.hpp>

namespace benchmarks::cuda {

/// Its memory is page-locked.
struct Tiled {
  Tiled(tandem::Runtime& rt, const char* name, tandem::linalg::TileShape shape)
      : matrix(shape), lock(rt, matrix.tile(0, 0).data, matrix.bytes()), data(rt, name, matrix) {}

  double element(tandem::Runtime& rt, std::size_t i, std::size_t j) const {
    const std::size_t tile = matrix.tile_size();
    auto acquired = rt.acquire(read(data(i / tile, j / tile)));
    return (*acquired)(i % tile, j % tile);
  }

  tandem::linalg::TileMatrix<double> matrix;
  tandem::PageLock lock;
  tandem::linalg::TiledData<double> data;
};

}  // namespace benchmarks::cuda
