// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/panel_product.h"
#include "kernels/cpu/scratch.h"
#include "kernels/view.h"

// Shared by the files that run oneDNN's plans; included by dnnl_*.cpp only.

namespace weft::kernels::cpu {

inline const dnnl::engine& dnnl_engine() {
  static const dnnl::engine cpu = [] {
    if (!has_avx512()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);  // WEFT_CPU=avx2 holds for oneDNN, too
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return cpu;
}

/// Of f32 or bf16, the dtypes that are given to oneDNN.
inline dnnl::memory::data_type dnnl_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// One thread's objects for running plans.
struct Lane {
  dnnl::stream stream{dnnl_engine()};
  Scratch scratchpad, weights, source, destination;
};
inline Lane& lane() {
  thread_local Lane mine;
  return mine;
}

}  // namespace weft::kernels::cpu
