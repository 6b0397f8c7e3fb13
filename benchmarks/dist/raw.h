// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

// The libraries' own collectives, called as their users call them, for comparison with Weft's.

namespace weft::benchmarks {

/// Blocking collectives of f32 in host memory. `count` is that of the whole tensor: all_reduce in place on x [count];
/// all_gather from y [count / ranks] to x [count]; reduce_scatter from x [count] to y [count / ranks].
struct RawCollectives {
  std::function<void(float* x, size_t count)> all_reduce;
  std::function<void(float* x, const float* y, size_t count)> all_gather;
  std::function<void(float* y, float* x, size_t count)> reduce_scatter;
};

/// On MPI's world, which has begun.
RawCollectives raw_mpi();
/// Connects the ranks by a folder that all see.
RawCollectives raw_gloo(int rank, int size, const std::string& folder);

}  // namespace weft::benchmarks
