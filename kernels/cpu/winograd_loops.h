// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cpu/panel_product_loops.h"
#include "kernels/cpu/winograd_kernels.h"

// The loops of a WinogradKernels, under the rules of panel_product_loops.h.

namespace weft::kernels::cpu {
namespace {

/// One-dimensional transforms of Lavin and Gray (2016), section 4.2: interpolation at 0, 1, -1, 2, -2 and infinity.
struct Input {  // B^T
  static constexpr int kIn = kPatch, kOut = kPatch;
  template <class V>
  static void line(V* out, const V* d) {
    const V a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1], c = d[4] - d[2], e = 2.0f * (d[3] - d[1]);
    out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
    out[1] = a + b;
    out[2] = a - b;
    out[3] = c + e;
    out[4] = c - e;
    out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
  }
};

struct Output {  // A^T
  static constexpr int kIn = kPatch, kOut = kTile;
  template <class V>
  static void line(V* out, const V* m) {
    const V sum1 = m[1] + m[2], difference1 = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    out[0] = m[0] + sum1 + sum2;
    out[1] = difference1 + 2.0f * difference2;
    out[2] = sum1 + 4.0f * sum2;
    out[3] = difference1 + 8.0f * difference2 + m[5];
  }
};

struct OutputAdjoint {  // A
  static constexpr int kIn = kTile, kOut = kPatch;
  template <class V>
  static void line(V* out, const V* y) {
    const V even1 = y[0] + y[2], odd1 = y[1] + y[3];
    const V even2 = y[0] + 4.0f * y[2], odd2 = 2.0f * y[1] + 8.0f * y[3];
    out[0] = y[0];
    out[1] = even1 + odd1;
    out[2] = even1 - odd1;
    out[3] = even2 + odd2;
    out[4] = even2 - odd2;
    out[5] = y[3];
  }
};

struct Filter {  // G
  static constexpr int kIn = 3, kOut = kPatch;
  template <class V>
  static void line(V* out, const V* g) {
    const V even1 = (-1.0f / 6) * (g[0] + g[2]), odd1 = (1.0f / 6) * g[1];
    const V even2 = (1.0f / 24) * g[0] + (1.0f / 6) * g[2], odd2 = (1.0f / 12) * g[1];
    out[0] = 0.25f * g[0];
    out[1] = even1 - odd1;
    out[2] = even1 + odd1;
    out[3] = even2 + odd2;
    out[4] = even2 - odd2;
    out[5] = g[2];
  }
};

struct FilterAdjoint {  // G^T
  static constexpr int kIn = kPatch, kOut = 3;
  template <class V>
  static void line(V* out, const V* u) {
    const V sum1 = u[1] + u[2], difference1 = u[2] - u[1], sum2 = u[3] + u[4], difference2 = u[3] - u[4];
    out[0] = 0.25f * u[0] - (1.0f / 6) * sum1 + (1.0f / 24) * sum2;
    out[1] = (1.0f / 6) * difference1 + (1.0f / 12) * difference2;
    out[2] = (1.0f / 6) * (sum2 - sum1) + u[5];
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

  static constexpr WinogradKernels kTable{kPanel, input, output, output_adjoint, filters, filters_adjoint, Product::product};
};

}  // namespace
}  // namespace weft::kernels::cpu
