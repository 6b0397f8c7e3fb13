// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <ostream>
#include <vector>

#include "kernels/contracts/conv2d.h"
#include "kernels/cuda/gemm/wgmma_plan.h"

namespace weft::tests {

using kernels::Conv2dArguments;

/// A convolution, for the tests of all kernels that compute convolutions.
struct Conv2dCase {
  int64_t N, H, W, C, O, R, S;
  Conv2dArguments arguments;

  int64_t P() const {
    return (H + 2 * arguments.padding.h - arguments.dilation.h * (R - 1) - 1) / arguments.stride.h + 1;
  }
  int64_t Q() const {
    return (W + 2 * arguments.padding.w - arguments.dilation.w * (S - 1) - 1) / arguments.stride.w + 1;
  }
  int64_t group_in() const { return C / arguments.groups; }

  std::vector<int64_t> x_sizes() const { return {N, H, W, C}; }
  std::vector<int64_t> w_sizes() const { return {O, R, S, group_in()}; }
  std::vector<int64_t> y_sizes() const { return {N, P(), Q(), O}; }

  /// body(index of x, index of w, index of y) for each product of the convolution.
  template <class Body>
  void for_each_product(Body&& body) const {
    const auto& a = arguments;
    const int64_t group_out = O / a.groups;
    for (int64_t n = 0; n < N; ++n)
      for (int64_t p = 0; p < P(); ++p)
        for (int64_t q = 0; q < Q(); ++q)
          for (int64_t o = 0; o < O; ++o)
            for (int64_t r = 0; r < R; ++r)
              for (int64_t s = 0; s < S; ++s) {
                const int64_t h = p * a.stride.h - a.padding.h + r * a.dilation.h;
                const int64_t w = q * a.stride.w - a.padding.w + s * a.dilation.w;
                if (h < 0 || h >= H || w < 0 || w >= W) continue;
                for (int64_t c = 0; c < group_in(); ++c)
                  body(((n * H + h) * W + w) * C + o / group_out * group_in() + c,
                       ((o * R + r) * S + s) * group_in() + c, ((n * P() + p) * Q() + q) * O + o);
              }
  }
};

inline std::ostream& operator<<(std::ostream& out, const Conv2dCase& c) {
  return out << c.N << "x" << c.H << "x" << c.W << "x" << c.C << " to " << c.O << " by " << c.R << "x" << c.S
             << " stride " << c.arguments.stride.h << "," << c.arguments.stride.w << " padding "
             << c.arguments.padding.h << "," << c.arguments.padding.w << " dilation " << c.arguments.dilation.h
             << " groups " << c.arguments.groups;
}

/// Every way through the kernels of an A100, the CPU's and their edges.
inline const Conv2dCase kConv2dCases[] = {
    {2, 8, 8, 16, 32, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}},  {1, 1, 1, 1, 1, 1, 1, {}},
    {3, 9, 7, 3, 10, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 1}},   {2, 11, 13, 3, 8, 7, 7, {{2, 2}, {3, 3}, {1, 1}, 1}},
    {2, 8, 8, 16, 24, 1, 1, {{1, 1}, {0, 0}, {1, 1}, 1}},  {2, 9, 9, 16, 24, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 1}},
    {2, 12, 10, 8, 12, 3, 3, {{1, 1}, {2, 2}, {2, 2}, 1}}, {2, 8, 9, 12, 18, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 3}},
    {2, 9, 8, 16, 16, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 16}}, {1, 10, 10, 7, 7, 5, 5, {{2, 2}, {2, 2}, {1, 1}, 7}},
    {2, 6, 17, 5, 9, 2, 5, {{3, 2}, {0, 4}, {1, 1}, 1}},   {0, 5, 5, 4, 4, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}},
    {1, 2, 5, 4, 4, 3, 3, {{1, 1}, {0, 0}, {1, 1}, 1}},    {2, 16, 13, 4, 6, 4, 3, {{3, 3}, {2, 1}, {2, 2}, 1}},
    {2, 10, 9, 8, 12, 2, 2, {{2, 2}, {1, 0}, {2, 2}, 1}},  // strides as long as what dilation adds to a filter
};

/// TMA's im2col loads and wgmma: channels in multiples of 8 and stems, more than one image in a chunk of 64 positions.
inline const Conv2dCase kHopperCases[] = {
    {3, 7, 6, 72, 24, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}},  {2, 9, 8, 16, 136, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 1}},
    {2, 12, 10, 8, 16, 3, 2, {{1, 1}, {2, 2}, {2, 3}, 1}}, {2, 9, 9, 64, 40, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 1}},
    {2, 9, 12, 72, 24, 3, 3, {{1, 2}, {1, 1}, {1, 1}, 1}}, {2, 14, 13, 8, 72, 7, 7, {{2, 2}, {3, 3}, {1, 1}, 1}},
    {1, 15, 11, 8, 16, 3, 4, {{2, 2}, {2, 1}, {2, 3}, 1}}, {1, 13, 9, 16, 8, 2, 2, {{4, 1}, {0, 0}, {3, 1}, 1}},
    {2, 15, 13, 3, 16, 7, 7, {{2, 2}, {3, 3}, {1, 1}, 1}}, {2, 9, 8, 3, 72, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}},
    {3, 6, 7, 1, 8, 3, 2, {{1, 1}, {2, 0}, {2, 1}, 1}},    {1, 12, 9, 5, 8, 2, 3, {{3, 1}, {0, 2}, {1, 1}, 1}},
    {1, 14, 33, 4, 8, 4, 16, {{4, 4}, {0, 5}, {1, 1}, 1}}, {1, 11, 13, 8, 8, 7, 5, {{3, 2}, {3, 0}, {1, 1}, 1}},
    {5, 4, 4, 8, 8, 3, 3, {{1, 1}, {0, 0}, {1, 1}, 1}},
};

/// How the turn-th of them is cut: in 16 turns, odd ones with other `splits` than even ones, every tile meets both,
/// with and without clusters.
inline kernels::WgmmaPlan hopper_plan(int turn, int splits) {
  using enum kernels::WgmmaPlan::Tile;
  return {.tile = std::array{small, medium, large, tall}[(turn + turn / 4) % 4],
          .splits = splits,
          .cluster = 1 + turn / 8 % 2};
}

}  // namespace weft::tests
