// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cpu/panel_product_loops.h"
#include "kernels/cpu/winograd_kernels.h"

// The loops of a WinogradKernels, under the rules of panel_product_loops.h.

namespace weft::kernels::cpu {
namespace {

// Lavin and Gray's (2016, section 4.2) one-dimensional transforms. They interpolate at 0, +-11/16, +-3/2 and
// infinity in place of 0, +-1, +-2 and infinity. All such points amplify the rounding of sums, and these nearly
// least (7.5 times, the best 7.1, the paper's 31). Their powers are exact in f32.
constexpr float kNear = 11.0f / 16, kNear2 = kNear * kNear, kNear3 = kNear2 * kNear;
constexpr float kFar = 3.0f / 2, kFar2 = kFar * kFar, kFar3 = kFar2 * kFar;
// x (x^2 - kNear^2) (x^2 - kFar^2) = x^5 - kSum x^3 + kProduct x vanishes at the points; its derivative is kProduct at
// 0 and 1 / kNearScale and 1 / kFarScale at the others.
constexpr float kSum = kNear2 + kFar2, kProduct = kNear2 * kFar2;
constexpr float kNearScale = 1 / (2 * kNear2 * (kNear2 - kFar2)), kFarScale = 1 / (2 * kFar2 * (kFar2 - kNear2));

struct Input {  // B^T
  static constexpr int kIn = kPatch, kOut = kPatch;
  template <class V>
  static void line(V* out, const V* d) {
    const V even1 = d[4] - kFar2 * d[2], odd1 = d[3] - kFar2 * d[1];
    const V even2 = d[4] - kNear2 * d[2], odd2 = d[3] - kNear2 * d[1];
    out[0] = (d[4] - kSum * d[2]) + kProduct * d[0];
    out[1] = even1 + kNear * odd1;
    out[2] = even1 - kNear * odd1;
    out[3] = even2 + kFar * odd2;
    out[4] = even2 - kFar * odd2;
    out[5] = (d[5] - kSum * d[3]) + kProduct * d[1];
  }
};

struct Output {  // A^T
  static constexpr int kIn = kPatch, kOut = kTile;
  template <class V>
  static void line(V* out, const V* m) {
    const V sum1 = m[1] + m[2], difference1 = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    out[0] = m[0] + sum1 + sum2;
    out[1] = kNear * difference1 + kFar * difference2;
    out[2] = kNear2 * sum1 + kFar2 * sum2;
    out[3] = (m[5] + kNear3 * difference1) + kFar3 * difference2;
  }
};

struct OutputAdjoint {  // A
  static constexpr int kIn = kTile, kOut = kPatch;
  template <class V>
  static void line(V* out, const V* y) {
    const V even1 = y[0] + kNear2 * y[2], odd1 = y[1] + kNear2 * y[3];
    const V even2 = y[0] + kFar2 * y[2], odd2 = y[1] + kFar2 * y[3];
    out[0] = y[0];
    out[1] = even1 + kNear * odd1;
    out[2] = even1 - kNear * odd1;
    out[3] = even2 + kFar * odd2;
    out[4] = even2 - kFar * odd2;
    out[5] = y[3];
  }
};

struct Filter {  // G
  static constexpr int kIn = 3, kOut = kPatch;
  template <class V>
  static void line(V* out, const V* g) {
    const V even1 = g[0] + kNear2 * g[2], even2 = g[0] + kFar2 * g[2];
    out[0] = (1 / kProduct) * g[0];
    out[1] = kNearScale * (even1 + kNear * g[1]);
    out[2] = kNearScale * (even1 - kNear * g[1]);
    out[3] = kFarScale * (even2 + kFar * g[1]);
    out[4] = kFarScale * (even2 - kFar * g[1]);
    out[5] = g[2];
  }
};

struct FilterAdjoint {  // G^T
  static constexpr int kIn = kPatch, kOut = 3;
  template <class V>
  static void line(V* out, const V* u) {
    const V sum1 = kNearScale * (u[1] + u[2]), difference1 = kNearScale * (u[1] - u[2]);
    const V sum2 = kFarScale * (u[3] + u[4]), difference2 = kFarScale * (u[3] - u[4]);
    out[0] = (1 / kProduct) * u[0] + (sum1 + sum2);
    out[1] = kNear * difference1 + kFar * difference2;
    out[2] = (u[5] + kNear2 * sum1) + kFar2 * sum2;
  }
};

template <int Lanes, int Rows>
struct Winograd {
  using Product = PanelLoops<float, Lanes, Rows>;
  using V = typename Product::V;
  static constexpr int kPanel = Product::kTable.panel;

  static V load(const float* p) { return Product::load(p); }
  static void store(float* p, V v) { Product::store(p, v); }
  static V load_some(const float* p, int64_t n) {
    float all[Lanes] = {};
    for (int64_t i = 0; i < n && i < Lanes; ++i) all[i] = p[i];
    return load(all);
  }
  static void store_some(float* p, V v, int64_t n) {
    float all[Lanes];
    store(all, v);
    for (int64_t i = 0; i < n && i < Lanes; ++i) p[i] = all[i];
  }

  /// The transform along the columns, then along the rows, of values from load(i, j), passed to save(i, j, value).
  template <class Line, class Load, class Save>
  [[gnu::always_inline]] static void both_ways(Load&& load_at, Save&& save_at) {
    constexpr int In = Line::kIn, Out = Line::kOut;
    V half[Out][In];
#pragma GCC unroll 8
    for (int j = 0; j < In; ++j) {
      V in[In], out[Out];
#pragma GCC unroll 8
      for (int i = 0; i < In; ++i) in[i] = load_at(i, j);
      Line::line(out, in);
#pragma GCC unroll 8
      for (int i = 0; i < Out; ++i) half[i][j] = out[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < Out; ++i) {
      V out[Out];
      Line::line(out, half[i]);
#pragma GCC unroll 8
      for (int j = 0; j < Out; ++j) save_at(i, j, out[j]);
    }
  }

  template <class Line>
  static void into_planes(const WinogradPlanes& out, const float* const* in, int64_t channels) {
    for (int64_t begin = 0; begin < channels; begin += out.panel) {
      float* const to = out.data + begin / out.panel * out.panel_step - begin;
      for (int64_t c = begin; c < begin + out.panel; c += Lanes) {
        const auto save = [&](int i, int j, V value) { store(to + (i * kPatch + j) * out.plane + c, value); };
        if (c + Lanes <= channels)
          both_ways<Line>([&](int i, int j) { return load(in[i * Line::kIn + j] + c); }, save);
        else if (c >= channels)
          for (int i = 0; i < kPlanes; ++i) store(to + i * out.plane + c, V{});
        else
          both_ways<Line>([&](int i, int j) { return load_some(in[i * Line::kIn + j] + c, channels - c); }, save);
      }
    }
  }

  static void input(const WinogradPlanes& v, const float* const* d, int64_t channels) {
    into_planes<Input>(v, d, channels);
  }
  static void output_adjoint(const WinogradPlanes& m, const float* const* dy, int64_t channels) {
    into_planes<OutputAdjoint>(m, dy, channels);
  }

  static void output(float* const* y, const float* m, int64_t plane, const float* bias, int64_t channels) {
    int64_t c = 0;
    const auto at = [&](int i, int j) { return load(m + (i * kPatch + j) * plane + c); };
    for (; c + Lanes <= channels; c += Lanes) {
      const V add = load(bias + c);
      both_ways<Output>(at, [&](int i, int j, V value) { store(y[i * kTile + j] + c, value + add); });
    }
    if (c == channels) return;
    const V add = load_some(bias + c, channels - c);
    both_ways<Output>(at, [&](int i, int j, V value) { store_some(y[i * kTile + j] + c, value + add, channels - c); });
  }

  static void filters(float* u, int64_t plane, const WinogradFilters& g, int64_t depth, int64_t columns) {
    constexpr int64_t kDeep = 16;  // a cache line of the filters where they are contiguous along the depth
    float block[9][kDeep][kPanel] = {};
    for (int64_t d0 = 0; d0 < depth; d0 += kDeep) {
      const int64_t deep = depth - d0 < kDeep ? depth - d0 : kDeep;
      for (int tap = 0; tap < 9; ++tap) {
        const float* from = g.w + tap * g.tap_step + d0 * g.depth_step;
        if (g.column_step == 1)
          for (int64_t d = 0; d < deep; ++d)
            for (int64_t i = 0; i < columns; ++i) block[tap][d][i] = from[d * g.depth_step + i];
        else
          for (int64_t i = 0; i < columns; ++i)
            for (int64_t d = 0; d < deep; ++d) block[tap][d][i] = from[d + i * g.column_step];
      }
      for (int64_t d = 0; d < deep; ++d)
        for (int64_t i = 0; i < kPanel; i += Lanes) {
          float* to = u + (d0 + d) * kPanel + i;
          both_ways<Filter>([&](int r, int s) { return load(&block[r * 3 + s][d][i]); },
                            [&](int r, int s, V value) { store(to + (r * kPatch + s) * plane, value); });
        }
    }
  }

  static void filters_adjoint(float* dw, int64_t tap_step, const float* u, int64_t plane, int64_t channels) {
    int64_t c = 0;
    const auto at = [&](int i, int j) { return load(u + (i * kPatch + j) * plane + c); };
    for (; c < channels; c += Lanes) {
      const int64_t count = channels - c;
      both_ways<FilterAdjoint>(at, [&](int i, int j, V value) {
        float* to = dw + (i * 3 + j) * tap_step + c;
        if (count >= Lanes)
          store(to, value);
        else
          store_some(to, value, count);
      });
    }
  }

  static constexpr WinogradKernels kTable{kPanel,  input,           output,          output_adjoint,
                                          filters, filters_adjoint, Product::product};
};

}  // namespace
}  // namespace weft::kernels::cpu
