// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/kernel_cost.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace weft::kernels {
namespace {

using Views = std::span<const View* const>;

/// y [B, M, N] = a [B, M, K] b: 2 K per element of y.
double matmul_flop(Views v) { return 2.0 * static_cast<double>(v[0]->numel() * v[1]->sizes[2]); }

/// y, pre, a [M, K], b [N, K].
double fp8_matmul_flop(Views v) { return 2.0 * static_cast<double>(v[0]->numel() * v[2]->sizes[1]); }

double matmul_fused_flop(Views v) { return 2.0 * static_cast<double>(v[0]->numel() * v[2]->sizes[2]); }  // y, pre, a

/// dx [M, I] = dy [M, O] w [O, I]; dw [O, I], db, dy [M, O].
double linear_backward_input_flop(Views v) { return 2.0 * static_cast<double>(v[0]->numel() * v[1]->sizes[1]); }
double linear_backward_weight_flop(Views v) { return 2.0 * static_cast<double>(v[0]->numel() * v[2]->sizes[0]); }

/// Every element of y meets the R S C / groups weights of its channel: 2 numel(y) numel(w) / O.
double conv2d_flop(const View& y, const View& w) {
  return w.sizes[0] == 0 ? 0 : 2.0 * static_cast<double>(y.numel()) * static_cast<double>(w.numel() / w.sizes[0]);
}
double conv2d_forward_flop(Views v) { return conv2d_flop(*v[0], *v[2]); }          // y, x, w
double conv2d_statistics_flop(Views v) { return conv2d_flop(*v[0], *v[3]); }       // y, part, x, w
double conv2d_backward_input_flop(Views v) { return conv2d_flop(*v[1], *v[2]); }   // dx, dy, w
double conv2d_backward_weight_flop(Views v) { return conv2d_flop(*v[1], *v[0]); }  // dw, dy, x

/// The two products q k^T and p v, 2 N M D per head each; what a causal mask hides counts as well.
double attention_flop(const View& q, const View& k) {
  return 2.0 * static_cast<double>(q.numel()) * static_cast<double>(k.sizes[1]);
}
double attention_forward_flop(Views v) { return 2 * attention_flop(*v[2], *v[3]); }   // y, lse, q, k
double attention_backward_flop(Views v) { return 5 * attention_flop(*v[4], *v[5]); }  // dq, dk, dv, dy, q, k

/// The usual count of a Fourier transform of n complex numbers, 5 n log2(n); of real ones half of it.
double complex_lines_flop(double numbers, int64_t n) { return 5 * numbers * std::log2(static_cast<double>(n)); }
double fft_lines_flop(Views v) {  // y [R, n, C, 2]
  return complex_lines_flop(static_cast<double>(v[0]->numel()) / 2, std::max<int64_t>(v[0]->sizes[1], 1));
}
double real_lines_flop(const View& real) {
  return complex_lines_flop(static_cast<double>(real.numel()) / 2, std::max<int64_t>(real.sizes[1], 1));
}
double rfft_lines_flop(Views v) { return real_lines_flop(*v[1]); }   // y, x
double irfft_lines_flop(Views v) { return real_lines_flop(*v[0]); }  // y, x

/// `factor` M N min(M, N) for each matrix [M, N]: the dominant term of the textbooks' counts.
double factorisation_flop(const View& x, double factor) {
  return factor * static_cast<double>(x.numel()) * static_cast<double>(std::min(x.sizes[1], x.sizes[2]));
}
double svd_flop(Views v) { return factorisation_flop(*v[3], 14); }            // u, s, vh, x
double eigh_flop(Views v) { return factorisation_flop(*v[2], 9); }            // w, v, x
double qr_flop(Views v) { return factorisation_flop(*v[2], 4); }              // q, r, x
double cholesky_flop(Views v) { return factorisation_flop(*v[1], 1.0 / 3); }  // l, x
double lu_flop(Views v) { return factorisation_flop(*v[2], 2.0 / 3); }        // lu, parity, x
double triangular_solve_flop(Views v) {                                       // y [B, N, K], a
  return static_cast<double>(v[0]->numel()) * static_cast<double>(v[1]->sizes[1]);
}
double solve_flop(Views v) { return factorisation_flop(*v[1], 2.0 / 3) + 2 * triangular_solve_flop(v); }

/// The bytes in memory: an expanded view (stride 0) holds less than its sizes say, one with gaps less than its span.
int64_t bytes_of(const View& view) {
  return view ? std::min(view.span(), view.numel()) * static_cast<int64_t>(size_of(view.dtype)) : 0;
}

/// The second pass of batch norm's backward reads x and the masked dy: that is dresidual where it was written, else dy,
/// masked by y again. With the forward's bias the mask follows from x: y is not read.
int64_t batch_norm_backward_bytes(Views v) {
  const View &dx = *v[0], &dresidual = *v[1], &dy = *v[4], &x = *v[5], &y = *v[6], &bias = *v[8];
  const int64_t mask = bias ? -bytes_of(y) : 0;
  if (!dx) return mask;
  return mask + bytes_of(x) + (dresidual ? bytes_of(dresidual) : bytes_of(dy) + (bias ? 0 : bytes_of(y)));
}
int64_t batch_norm_backward_input_bytes(Views v) { return *v[8] ? -bytes_of(*v[6]) : 0; }

struct Entry {
  std::string_view name;
  unsigned updated = 0;  // bit i: view i is read and written
  double (*flop)(Views) = nullptr;
  unsigned twice = 0;                      // bit i: view i is read, or written and read again, twice
  double arithmetic = 0;                   // without flop: operations per element of the largest view
  int64_t (*more_bytes)(Views) = nullptr;  // the cases that bits do not describe
};

// One line per contract (WEFT_KERNEL), in the order of its header; a test holds the two together.
constexpr Entry kTable[] = {
    {.name = "attention_forward", .flop = attention_forward_flop},
    {.name = "attention_backward", .flop = attention_backward_flop},
    {.name = "batch_norm_forward", .twice = 1u << 5, .arithmetic = 8},  // x
    {.name = "batch_norm_inference", .arithmetic = 4},
    {.name = "batch_norm_backward", .arithmetic = 10, .more_bytes = batch_norm_backward_bytes},
    {.name = "batch_norm_statistics", .arithmetic = 5},
    {.name = "batch_norm_of_parts", .arithmetic = 4},
    {.name = "batch_norm_backward_input", .arithmetic = 6, .more_bytes = batch_norm_backward_input_bytes},
    {.name = "binary_forward", .arithmetic = 1},
    {.name = "compare", .arithmetic = 1},
    {.name = "where", .arithmetic = 1},
    {.name = "conv2d_forward", .flop = conv2d_forward_flop},
    {.name = "conv2d_norm", .flop = conv2d_forward_flop},
    {.name = "conv2d_statistics", .flop = conv2d_statistics_flop},
    {.name = "conv2d_backward_input", .flop = conv2d_backward_input_flop},
    {.name = "conv2d_backward_weight", .flop = conv2d_backward_weight_flop},
    {.name = "copy"},
    {.name = "cross_entropy_forward", .arithmetic = 4},
    {.name = "cross_entropy_backward", .arithmetic = 5},
    {.name = "cumsum", .arithmetic = 1},
    {.name = "ema_step", .updated = 0b1, .arithmetic = 3},
    {.name = "exchange", .updated = 0b11},
    {.name = "fill"},
    {.name = "fft_lines", .flop = fft_lines_flop},
    {.name = "rfft_lines", .flop = rfft_lines_flop},
    {.name = "irfft_lines", .flop = irfft_lines_flop},
    {.name = "fp8_quantize", .updated = 0b100, .arithmetic = 4},  // amax
    {.name = "fp8_update_scale", .updated = 0b110, .arithmetic = 2},
    {.name = "fp8_matmul", .flop = fp8_matmul_flop},
    {.name = "arange", .arithmetic = 2},
    {.name = "image_normalize", .arithmetic = 3},
    {.name = "image_mix", .twice = 0b10, .arithmetic = 2},  // x: each image, and its predecessor
    {.name = "index_select"},
    {.name = "index_select_backward", .arithmetic = 1},
    {.name = "gather"},
    {.name = "gather_backward", .arithmetic = 1},
    {.name = "index_put"},
    {.name = "ravel_index", .updated = 0b1, .arithmetic = 2},
    {.name = "layer_norm_forward", .arithmetic = 7},
    {.name = "layer_norm_backward", .arithmetic = 14},
    {.name = "group_norm_forward", .arithmetic = 8},
    {.name = "group_norm_backward", .arithmetic = 14},
    {.name = "svd", .flop = svd_flop},
    {.name = "eigh", .flop = eigh_flop},
    {.name = "qr", .flop = qr_flop},
    {.name = "cholesky", .flop = cholesky_flop},
    {.name = "lu", .flop = lu_flop},
    {.name = "solve", .flop = solve_flop},
    {.name = "triangular_solve", .flop = triangular_solve_flop},
    {.name = "linear_backward_input", .flop = linear_backward_input_flop},
    {.name = "linear_backward_weight", .flop = linear_backward_weight_flop},
    {.name = "matmul", .flop = matmul_flop},
    {.name = "matmul_fused", .flop = matmul_fused_flop},
    {.name = "mixed_targets"},
    {.name = "nonzero"},
    {.name = "rms_norm_forward", .arithmetic = 5},
    {.name = "rms_norm_backward", .arithmetic = 11},
    {.name = "sgd_step", .updated = 0b11, .arithmetic = 6},         // w, velocity
    {.name = "adam_step", .updated = 0b1111, .arithmetic = 15},     // w, m, v, largest
    {.name = "adadelta_step", .updated = 0b111, .arithmetic = 15},  // w, square_average, delta_average
    {.name = "rmsprop_step", .updated = 0b1111, .arithmetic = 12},  // w, square_average, velocity, gradient_average
    {.name = "adagrad_step", .updated = 0b11, .arithmetic = 8},     // w, sum
    {.name = "lion_step", .updated = 0b11, .arithmetic = 10},       // w, m
    {.name = "parameter_squares", .arithmetic = 2},
    {.name = "lars_step", .updated = 0b11, .arithmetic = 7},         // w, velocity
    {.name = "lamb_direction", .updated = 0b110, .arithmetic = 15},  // m, v
    {.name = "lamb_step", .updated = 0b1, .arithmetic = 2},          // w
    {.name = "clip_gradient", .updated = 0b1, .arithmetic = 1},
    {.name = "max_pool2d_forward", .arithmetic = 3},
    {.name = "max_pool2d_backward", .arithmetic = 3},
    {.name = "avg_pool2d_forward", .arithmetic = 1},
    {.name = "avg_pool2d_backward", .arithmetic = 1},
    {.name = "adaptive_avg_pool2d_forward", .arithmetic = 1},
    {.name = "adaptive_avg_pool2d_backward", .arithmetic = 1},
    {.name = "random_uniform", .arithmetic = 25},
    {.name = "check_weights", .arithmetic = 1},
    {.name = "random_normal", .arithmetic = 40},
    {.name = "random_bernoulli", .arithmetic = 25},
    {.name = "random_permutation", .arithmetic = 40},
    {.name = "random_integers", .arithmetic = 50},
    {.name = "dropout", .arithmetic = 25},
    {.name = "lstm_cell_forward", .updated = 0b100, .arithmetic = 12},  // gates, the largest
    {.name = "lstm_cell_backward", .updated = 0b10, .arithmetic = 8},   // dc
    {.name = "gru_cell_forward", .arithmetic = 10},
    {.name = "gru_cell_backward", .arithmetic = 5},
    {.name = "reduce", .arithmetic = 2},
    {.name = "argmax", .arithmetic = 1},
    {.name = "rotary", .arithmetic = 6},
    {.name = "softmax_forward", .arithmetic = 8},
    {.name = "softmax_backward", .arithmetic = 4},
    {.name = "sort"},
    {.name = "search_sorted"},
    {.name = "special_forward", .arithmetic = 60},  // polynomials of f64; polygamma has more
    {.name = "unary_forward", .arithmetic = 20},  // gelu; the others have fewer
    {.name = "unary_backward", .arithmetic = 30},
};

static_assert(std::ranges::none_of(kTable, [](const Entry& e) { return e.flop != nullptr && e.arithmetic > 0; }));

const Entry* entry_of(std::string_view name) {
  const Entry* const found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

}  // namespace

KernelCost cost_of(const KernelCall& call) {
  const Entry* const entry = entry_of(call.name);
  const Entry none{};
  const Entry& e = entry ? *entry : none;
  KernelCost cost;
  int64_t most = 0;
  for (size_t i = 0; i < call.views.size(); ++i) {
    const View& view = *call.views[i];
    cost.bytes += bytes_of(view) * ((e.updated | e.twice) >> i & 1 ? 2 : 1);
    if (view) most = std::max(most, view.numel());
  }
  cost.arithmetic = e.arithmetic * static_cast<double>(most);
  if (e.more_bytes) cost.bytes += e.more_bytes(call.views);
  if (e.flop) {
    cost.flop = e.flop(call.views);
    for (const View* view : call.views)  // in addition to f32 sums and outputs
      if (*view && view->rank >= 2 && size_of(view->dtype) == 2) cost.product = view->dtype;
  }
  return cost;
}

bool has_cost(const char* name) { return entry_of(name) != nullptr; }

}  // namespace weft::kernels
