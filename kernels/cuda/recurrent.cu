// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/recurrent.h"

#include "kernels/contracts/recurrent_math.h"
#include "kernels/contracts/unary_math.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"

// Grid-stride, 256 threads per block, a unit of a sequence per thread, no barrier; neighbouring lanes access
// neighbours in each gate's row. Elements per unit: LSTM 11 forward, 14 backward; GRU 12 and 14. A step of a typical
// batch is a few hundred kB: the launch dominates.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void lstm_forward_kernel(T* h, T* c, T* gates, const T* c_before, int64_t B, int64_t H) {
  using S = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < B * H; at += step) {
    T* const i = gates + at / H * 4 * H + at % H;
    LstmGates<S> v{from<S>(i[0]), from<S>(i[H]), from<S>(i[2 * H]), from<S>(i[3 * H])};
    S now, out;
    lstm_forward<StandardMath>(v, now, out, from<S>(c_before[at]));
    i[0] = to<T>(v.i);
    i[H] = to<T>(v.f);
    i[2 * H] = to<T>(v.g);
    i[3 * H] = to<T>(v.o);
    c[at] = to<T>(now);
    h[at] = to<T>(out);
  }
}

template <class T>
__global__ void lstm_backward_kernel(T* dgates, T* dc, const T* dy, const T* dh_later, const T* gates, const T* c,
                                     const T* c_before, int64_t B, int64_t H) {
  using S = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < B * H; at += step) {
    const int64_t first = at / H * 4 * H + at % H;
    const T* const i = gates + first;
    T* const di = dgates + first;
    const LstmGates<S> v{from<S>(i[0]), from<S>(i[H]), from<S>(i[2 * H]), from<S>(i[3 * H])};
    const S dh = from<S>(dy[at]) + (dh_later != nullptr ? from<S>(dh_later[at]) : S(0));
    S down = from<S>(dc[at]);
    const LstmGates<S> d = lstm_backward<StandardMath>(v, from<S>(c[at]), from<S>(c_before[at]), dh, down);
    di[0] = to<T>(d.i);
    di[H] = to<T>(d.f);
    di[2 * H] = to<T>(d.g);
    di[3 * H] = to<T>(d.o);
    dc[at] = to<T>(down);
  }
}

template <class T>
__global__ void gru_forward_kernel(T* h, T* saved, const T* from_x, const T* from_h, const T* h_before, int64_t B,
                                   int64_t H) {
  using S = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < B * H; at += step) {
    const T *const x = from_x + at / H * 3 * H + at % H, *const hs = from_h + at / H * 3 * H + at % H;
    T* const r = saved + at / H * 4 * H + at % H;
    GruValues<S> v;
    const S out = gru_forward<StandardMath>(v, from<S>(x[0]), from<S>(x[H]), from<S>(x[2 * H]), from<S>(hs[0]),
                                            from<S>(hs[H]), from<S>(hs[2 * H]), from<S>(h_before[at]));
    r[0] = to<T>(v.r);
    r[H] = to<T>(v.z);
    r[2 * H] = to<T>(v.n);
    r[3 * H] = to<T>(v.from_h);
    h[at] = to<T>(out);
  }
}

template <class T>
__global__ void gru_backward_kernel(T* dfrom_x, T* dfrom_h, T* dh_before, const T* dy, const T* dh_later,
                                    const T* saved, const T* h_before, int64_t B, int64_t H) {
  using S = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < B * H; at += step) {
    T *const dx = dfrom_x + at / H * 3 * H + at % H, *const dhs = dfrom_h + at / H * 3 * H + at % H;
    const T* const r = saved + at / H * 4 * H + at % H;
    const GruValues<S> v{from<S>(r[0]), from<S>(r[H]), from<S>(r[2 * H]), from<S>(r[3 * H])};
    const S dh = from<S>(dy[at]) + (dh_later != nullptr ? from<S>(dh_later[at]) : S(0));
    const GruGradients<S> d = gru_backward(v, from<S>(h_before[at]), dh);
    dx[0] = dhs[0] = to<T>(d.r);
    dx[H] = dhs[H] = to<T>(d.z);
    dx[2 * H] = to<T>(d.n);
    dhs[2 * H] = to<T>(d.n * v.r);
    dh_before[at] = to<T>(d.h_before);
  }
}

/// `like` is [B, H]; body.operator()<T>(grid, B, H).
template <class Body>
void for_units(const char* name, const View& like, const Body& body) {
  with_dtype<float, double, bf16, f16>(like.dtype, name, [&]<class T>() {
    body.template operator()<T>(dim3(blocks_for(like.numel(), kThreads)), like.sizes[0], like.sizes[1]);
  });
}

template <class T>
const T* input(const View& view) {
  return view ? view.as<T>() : nullptr;
}

}  // namespace

void lstm_cell_forward(const Queue& queue, const View& h, const View& c, const View& gates, const View& c_before) {
  for_units("lstm_cell_forward", h, [&]<class T>(dim3 grid, int64_t B, int64_t H) {
    launch(queue, "lstm_cell_forward", grid, dim3(kThreads), 0, &lstm_forward_kernel<T>, h.as<T>(), c.as<T>(),
           gates.as<T>(), input<T>(c_before), B, H);
  });
}

void lstm_cell_backward(const Queue& queue, const View& dgates, const View& dc, const View& dy, const View& dh_later,
                        const View& gates, const View& c, const View& c_before) {
  for_units("lstm_cell_backward", dc, [&]<class T>(dim3 grid, int64_t B, int64_t H) {
    launch(queue, "lstm_cell_backward", grid, dim3(kThreads), 0, &lstm_backward_kernel<T>, dgates.as<T>(), dc.as<T>(),
           input<T>(dy), input<T>(dh_later), input<T>(gates), input<T>(c), input<T>(c_before), B, H);
  });
}

void gru_cell_forward(const Queue& queue, const View& h, const View& saved, const View& from_x, const View& from_h,
                      const View& h_before) {
  for_units("gru_cell_forward", h, [&]<class T>(dim3 grid, int64_t B, int64_t H) {
    launch(queue, "gru_cell_forward", grid, dim3(kThreads), 0, &gru_forward_kernel<T>, h.as<T>(), saved.as<T>(),
           input<T>(from_x), input<T>(from_h), input<T>(h_before), B, H);
  });
}

void gru_cell_backward(const Queue& queue, const View& dfrom_x, const View& dfrom_h, const View& dh_before,
                       const View& dy, const View& dh_later, const View& saved, const View& h_before) {
  for_units("gru_cell_backward", dh_before, [&]<class T>(dim3 grid, int64_t B, int64_t H) {
    launch(queue, "gru_cell_backward", grid, dim3(kThreads), 0, &gru_backward_kernel<T>, dfrom_x.as<T>(),
           dfrom_h.as<T>(), dh_before.as<T>(), input<T>(dy), input<T>(dh_later), input<T>(saved), input<T>(h_before), B,
           H);
  });
}

}  // namespace weft::kernels::cuda
