// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/recurrent.h"

#include "kernels/contracts/recurrent_math.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {
namespace {

/// Calls body.operator()<T, S>(b) for each sequence, S what T is computed in.
template <class Body>
void for_sequences(const char* op, const View& h, int64_t work, const Body& body) {
  with_dtype<float, double, bf16, f16>(h.dtype, op, [&]<class T>() {
    parallel_for(h.sizes[0], h.sizes[1] * work, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) body.template operator()<T, Accumulate<T>>(b);
    });
  });
}

}  // namespace

void lstm_cell_forward(const Queue&, const View& h, const View& c, const View& gates, const View& c_before) {
  const int64_t H = h.sizes[1];
  for_sequences("lstm_cell_forward", h, 40, [&]<class T, class S>(int64_t b) {
    T *y = h.as<T>() + b * H, *cell = c.as<T>() + b * H, *i = gates.as<T>() + b * 4 * H, *f = i + H, *g = f + H,
      *o = g + H;
    const T* before = c_before.as<T>() + b * H;
#pragma GCC ivdep
    for (int64_t j = 0; j < H; ++j) {
      LstmGates<S> v{static_cast<S>(i[j]), static_cast<S>(f[j]), static_cast<S>(g[j]), static_cast<S>(o[j])};
      S now, out;
      lstm_forward<VectorMath>(v, now, out, static_cast<S>(before[j]));
      i[j] = static_cast<T>(v.i);
      f[j] = static_cast<T>(v.f);
      g[j] = static_cast<T>(v.g);
      o[j] = static_cast<T>(v.o);
      cell[j] = static_cast<T>(now);
      y[j] = static_cast<T>(out);
    }
  });
}

void lstm_cell_backward(const Queue&, const View& dgates, const View& dc, const View& dy, const View& dh_later,
                        const View& gates, const View& c, const View& c_before) {
  const int64_t H = dc.sizes[1];
  for_sequences("lstm_cell_backward", dc, 40, [&]<class T, class S>(int64_t b) {
    T *di = dgates.as<T>() + b * 4 * H, *df = di + H, *dg = df + H, *d_o = dg + H, *dcell = dc.as<T>() + b * H;
    const T *i = gates.as<T>() + b * 4 * H, *f = i + H, *g = f + H, *o = g + H, *cell = c.as<T>() + b * H,
            *before = c_before.as<T>() + b * H, *gradient = dy.as<T>() + b * H,
            *later = dh_later ? dh_later.as<T>() + b * H : nullptr;
#pragma GCC ivdep
    for (int64_t j = 0; j < H; ++j) {
      const LstmGates<S> v{static_cast<S>(i[j]), static_cast<S>(f[j]), static_cast<S>(g[j]), static_cast<S>(o[j])};
      const S dh = static_cast<S>(gradient[j]) + (later ? static_cast<S>(later[j]) : S(0));
      S down = static_cast<S>(dcell[j]);
      const LstmGates<S> d = lstm_backward<VectorMath>(v, static_cast<S>(cell[j]), static_cast<S>(before[j]), dh, down);
      di[j] = static_cast<T>(d.i);
      df[j] = static_cast<T>(d.f);
      dg[j] = static_cast<T>(d.g);
      d_o[j] = static_cast<T>(d.o);
      dcell[j] = static_cast<T>(down);
    }
  });
}

void gru_cell_forward(const Queue&, const View& h, const View& saved, const View& from_x, const View& from_h,
                      const View& h_before) {
  const int64_t H = h.sizes[1];
  for_sequences("gru_cell_forward", h, 30, [&]<class T, class S>(int64_t b) {
    T *y = h.as<T>() + b * H, *r = saved.as<T>() + b * 4 * H, *z = r + H, *n = z + H, *of_h = n + H;
    const T *x = from_x.as<T>() + b * 3 * H, *hs = from_h.as<T>() + b * 3 * H, *before = h_before.as<T>() + b * H;
#pragma GCC ivdep
    for (int64_t j = 0; j < H; ++j) {
      GruValues<S> v;
      const S out = gru_forward<VectorMath>(
          v, static_cast<S>(x[j]), static_cast<S>(x[H + j]), static_cast<S>(x[2 * H + j]), static_cast<S>(hs[j]),
          static_cast<S>(hs[H + j]), static_cast<S>(hs[2 * H + j]), static_cast<S>(before[j]));
      r[j] = static_cast<T>(v.r);
      z[j] = static_cast<T>(v.z);
      n[j] = static_cast<T>(v.n);
      of_h[j] = static_cast<T>(v.from_h);
      y[j] = static_cast<T>(out);
    }
  });
}

void gru_cell_backward(const Queue&, const View& dfrom_x, const View& dfrom_h, const View& dh_before, const View& dy,
                       const View& dh_later, const View& saved, const View& h_before) {
  const int64_t H = dh_before.sizes[1];
  for_sequences("gru_cell_backward", dh_before, 20, [&]<class T, class S>(int64_t b) {
    T *dx = dfrom_x.as<T>() + b * 3 * H, *dhs = dfrom_h.as<T>() + b * 3 * H, *down = dh_before.as<T>() + b * H;
    const T *r = saved.as<T>() + b * 4 * H, *z = r + H, *n = z + H, *of_h = n + H, *before = h_before.as<T>() + b * H,
            *gradient = dy.as<T>() + b * H, *later = dh_later ? dh_later.as<T>() + b * H : nullptr;
#pragma GCC ivdep
    for (int64_t j = 0; j < H; ++j) {
      const GruValues<S> v{static_cast<S>(r[j]), static_cast<S>(z[j]), static_cast<S>(n[j]), static_cast<S>(of_h[j])};
      const S dh = static_cast<S>(gradient[j]) + (later ? static_cast<S>(later[j]) : S(0));
      const GruGradients<S> d = gru_backward(v, static_cast<S>(before[j]), dh);
      dx[j] = dhs[j] = static_cast<T>(d.r);
      dx[H + j] = dhs[H + j] = static_cast<T>(d.z);
      dx[2 * H + j] = static_cast<T>(d.n);
      dhs[2 * H + j] = static_cast<T>(d.n * v.r);
      down[j] = static_cast<T>(d.h_before);
    }
  });
}

}  // namespace weft::kernels::cpu
