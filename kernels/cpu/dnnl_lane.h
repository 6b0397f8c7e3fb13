// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/processor.h"
#include "kernels/cpu/scratch.h"
#include "kernels/view.h"

// Shared by the files that run oneDNN's plans; included by dnnl_*.cpp only.

namespace weft::kernels::cpu {

inline const dnnl::engine& dnnl_engine() {
  static const dnnl::engine cpu = [] {
    if (level() == Level::avx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);  // WEFT_CPU holds for oneDNN, too
    if (level() == Level::avx512) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return cpu;
}

/// For f32 or bf16, the dtypes that oneDNN gets.
inline dnnl::memory::data_type dnnl_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// The kernel that oneDNN chooses for an operation. oneDNN 2 takes the parts in a description, oneDNN 3 as they are.
template <class Operation, class... Parts>
auto choose(const dnnl::primitive_attr& attributes, const Parts&... parts) {
#if DNNL_VERSION_MAJOR < 3
  return typename Operation::primitive_desc(typename Operation::desc(parts...), attributes, dnnl_engine());
#else
  return typename Operation::primitive_desc(dnnl_engine(), parts..., attributes);
#endif
}
/// As above, for the gradient of a convolution, whose forward was chosen before.
template <class Operation, class... Parts>
auto choose_gradient(const dnnl::primitive_attr& attributes, const dnnl::convolution_forward::primitive_desc& forward,
                     const Parts&... parts) {
#if DNNL_VERSION_MAJOR < 3
  return typename Operation::primitive_desc(typename Operation::desc(parts...), attributes, dnnl_engine(), forward);
#else
  return typename Operation::primitive_desc(dnnl_engine(), parts..., forward, attributes);
#endif
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
