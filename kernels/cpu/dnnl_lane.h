// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/view.h"

// What the files that run oneDNN's plans share; included by dnnl_*.cpp only.

namespace weft::kernels::cpu {

inline const dnnl::engine& dnnl_engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// Of f32 or bf16, the dtypes that are given to oneDNN.
inline dnnl::memory::data_type dnnl_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// Memory that grows to the largest request and stays: one per thread and purpose.
class Scratch {
 public:
  void* at_least(size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();  // before the larger one is asked for
      bytes_ = (bytes + 63) / 64 * 64;
      memory_.reset(std::aligned_alloc(64, bytes_));
      WEFT_CHECK(memory_, "oneDNN: no memory for a workspace of ", bytes_, " bytes");
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t bytes_ = 0;
};

/// What one thread runs plans with.
struct Lane {
  dnnl::stream stream{dnnl_engine()};
  Scratch scratchpad, weights, source, destination;
};
inline Lane& lane() {
  thread_local Lane mine;
  return mine;
}

}  // namespace weft::kernels::cpu
