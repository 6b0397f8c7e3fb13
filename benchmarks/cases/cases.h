// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "benchmarks/harness/case.h"
#include "core/stream.h"
#include "core/tensor.h"

// The cases of `build/bin/bench`, one file per group. Each function appends its group to the list; the names, sizes and
// units of the cases that a peer has too (benchmarks/peers/) are the same there.

namespace weft::benchmarks {

using bench::Cases;
using bench::Work;

/// Where the cases run, and whether in tiny sizes (a test of the cases, not a measurement).
struct Target {
  Device device;
  bool tiny = false;
  int64_t size(int64_t full, int64_t small) const { return tiny ? small : full; }
};

/// `step` repeated on the target; waiting is waiting for its stream.
Work work_on(const Target& target, std::function<void()> step, double amount = 1, std::function<void()> before = {});

// The suite cpu.
void add_network_cases(Cases& cases, const Target& target);
void add_transformer_cases(Cases& cases, const Target& target);
void add_convolution_cases(Cases& cases, const Target& target);
void add_matmul_cases(Cases& cases, const Target& target);
void add_norm_cases(Cases& cases, const Target& target);
void add_elementwise_cases(Cases& cases, const Target& target);
void add_optimizer_cases(Cases& cases, const Target& target);
void add_tiny_op_cases(Cases& cases, const Target& target);
void add_loader_cases(Cases& cases, const Target& target);
void add_process_cases(Cases& cases, const Target& target);

// The suite gpu; it has the cases of optimizers and tiny ops too.
void add_gpu_network_cases(Cases& cases, const Target& target);
void add_gpu_matmul_cases(Cases& cases, const Target& target);
void add_gpu_convolution_cases(Cases& cases, const Target& target);
void add_gpu_norm_cases(Cases& cases, const Target& target);
void add_gpu_transformer_cases(Cases& cases, const Target& target);
void add_gpu_transformer_training_cases(Cases& cases, const Target& target);
void add_gpu_memory_cases(Cases& cases, const Target& target);
void add_gpu_input_cases(Cases& cases, const Target& target);

// The suite ops: one call of each common op.
void add_every_op(Cases& cases, const Target& target);

// The suite plans: products and convolutions in every way that gemm_wgmma.cuh can cut them.
void add_plan_cases(Cases& cases, const Target& target);
// The suite engines: products and convolutions by Weft's own kernels and by the vendor's.
void add_engine_cases(Cases& cases, const Target& target);

// The suite dist: collectives of two ranks beside the same calls of Open MPI and Gloo.
void add_collective_cases(Cases& cases, const Target& target);

}  // namespace weft::benchmarks
