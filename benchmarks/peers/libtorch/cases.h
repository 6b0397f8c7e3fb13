// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/types.h>

#include "benchmarks/harness/case.h"

// The cases of benchmarks/cases/ in libtorch, under the same names. Where the order of an image's dimensions matters,
// the case is there twice: NAME (NCHW) and NAME@channels_last; the better one counts.

namespace peer {

using bench::Cases;
using bench::Work;
using torch::Tensor;

/// `tiny`: a test of the cases, not a measurement.
struct Target {
  bool tiny = false;
  int64_t size(int64_t full, int64_t small) const { return tiny ? small : full; }
};

/// The memory layout of a four-dimensional tensor.
enum class Layout { nchw, channels_last };
Tensor in_layout(const Tensor& x, Layout layout);
/// NAME or NAME@channels_last.
std::string in_layout(const std::string& name, Layout layout);
inline constexpr Layout kLayouts[] = {Layout::nchw, Layout::channels_last};

void add_network_cases(Cases& cases, const Target& target);
void add_convolution_cases(Cases& cases, const Target& target);
void add_matmul_cases(Cases& cases, const Target& target);
void add_norm_cases(Cases& cases, const Target& target);
void add_elementwise_cases(Cases& cases, const Target& target);
void add_optimizer_cases(Cases& cases, const Target& target);
void add_tiny_op_cases(Cases& cases, const Target& target);
void add_loader_cases(Cases& cases, const Target& target);
void add_process_cases(Cases& cases, const Target& target);

}  // namespace peer
