// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_cost.h"

#include <algorithm>
#include <string_view>

namespace weft::kernels {
namespace {

using Views = std::span<const View* const>;

/// y [B, M, N] = a [B, M, K] b: 2 K per element of y.
double matmul_flop(Views v) { return 2.0 * static_cast<double>(v[0]->numel() * v[1]->sizes[2]); }

/// Every element of y meets the R S C / groups weights of its channel: 2 numel(y) numel(w) / O.
double conv2d_flop(const View& y, const View& w) {
  return w.sizes[0] == 0 ? 0 : 2.0 * static_cast<double>(y.numel()) * static_cast<double>(w.numel() / w.sizes[0]);
}
double conv2d_forward_flop(Views v) { return conv2d_flop(*v[0], *v[2]); }          // y, x, w
double conv2d_backward_input_flop(Views v) { return conv2d_flop(*v[1], *v[2]); }   // dx, dy, w
double conv2d_backward_weight_flop(Views v) { return conv2d_flop(*v[1], *v[0]); }  // dw, dy, x

struct Entry {
  std::string_view name;
  unsigned updated = 0;  // bit i: view i is read and written
  double (*flop)(Views) = nullptr;
};

// One line per contract (WEFT_KERNEL), in the order of its header; a test holds the two together.
constexpr Entry kTable[] = {
    {"batch_norm_forward"},
    {"batch_norm_inference"},
    {"batch_norm_backward"},
    {"batch_norm_statistics"},
    {"batch_norm_join"},
    {"batch_norm_backward_input"},
    {"binary_forward"},
    {"compare"},
    {"where"},
    {"conv2d_forward", 0, conv2d_forward_flop},
    {"conv2d_backward_input", 0, conv2d_backward_input_flop},
    {"conv2d_backward_weight", 0, conv2d_backward_weight_flop},
    {"copy"},
    {"cross_entropy_forward"},
    {"cross_entropy_backward"},
    {"fill"},
    {"arange"},
    {"image_normalize"},
    {"index_select"},
    {"index_select_backward"},
    {"gather"},
    {"gather_backward"},
    {"layer_norm_forward"},
    {"layer_norm_backward"},
    {"matmul", 0, matmul_flop},
    {"sgd_step", 0b11},        // w, velocity
    {"adam_step", 0b111},      // w, m, v
    {"adadelta_step", 0b111},  // w, square_average, delta_average
    {"clip_gradient", 0b1},
    {"max_pool2d_forward"},
    {"max_pool2d_backward"},
    {"avg_pool2d_forward"},
    {"avg_pool2d_backward"},
    {"adaptive_avg_pool2d_forward"},
    {"adaptive_avg_pool2d_backward"},
    {"random_uniform"},
    {"random_normal"},
    {"random_bernoulli"},
    {"random_permutation"},
    {"dropout"},
    {"reduce"},
    {"argmax"},
    {"softmax_forward"},
    {"softmax_backward"},
    {"unary_forward"},
    {"unary_backward"},
};

const Entry* entry_of(std::string_view name) {
  const Entry* const found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

/// What lies in memory: an expanded view (stride 0) holds less than its sizes say, one with gaps less than its span.
int64_t bytes_of(const View& view) {
  return view ? std::min(view.span(), view.numel()) * static_cast<int64_t>(size_of(view.dtype)) : 0;
}

}  // namespace

KernelCost cost_of(const KernelCall& call) {
  const Entry* const entry = entry_of(call.name);
  KernelCost cost;
  for (size_t i = 0; i < call.views.size(); ++i)
    cost.bytes += bytes_of(*call.views[i]) * (entry && entry->updated >> i & 1 ? 2 : 1);
  if (entry && entry->flop) cost.flop = entry->flop(call.views);
  return cost;
}

bool has_cost(const char* name) { return entry_of(name) != nullptr; }

}  // namespace weft::kernels
