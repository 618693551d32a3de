/// Which rows and k of a warp's tile the lanes have where threads multiply a matrix by a vector: pure integer
/// functions.
#pragma once
#include <algorithm>
#include <cstdint>

namespace gemmc {

/// With k contiguous (`alongK`) lanes lie along k, each loads `width` of it, `unroll` times, of `rows` rows; else along
/// m, each loads `width` rows, `unroll` times. Those that are left lie beside each other the other way.
struct VectorLanes {
  VectorLanes(bool alongK, int64_t warpM, int64_t warpK, int64_t width) {
    constexpr int64_t lanes = 32;
    const auto some = [&](int64_t length) { return std::clamp<int64_t>(length / width, 1, lanes); };
    if (alongK) {
      lanesK = some(warpK), lanesM = lanes / lanesK;
      rows = warpM / lanesM, unroll = warpK / (lanesK * width);
    } else {
      lanesM = some(warpM), lanesK = lanes / lanesM;
      rows = width, unroll = warpK / lanesK;
    }
  }
  int64_t lanesM, lanesK, rows, unroll;
};

} // namespace gemmc
