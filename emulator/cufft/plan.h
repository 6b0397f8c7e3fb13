// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/cuda/library_operand.h"

namespace emulator::fft {

/// How numbers lie in memory, in elements: (i, j, k) of batch b at b distance + ((i embed[1] + j) embed[2] + k) stride.
struct Lattice {
  std::vector<int64_t> embed;
  int64_t stride = 1, distance = 0;
};

/// Transforms of up to three dimensions, a batch of them.
struct Plan {
  std::vector<int64_t> n;
  int64_t batches = 1;
  bool real_in = false, real_out = false, f64 = false;
  bool standard = true;  ///< memory without gaps; `in` and `out` are computed when it runs
  Lattice in, out;

  size_t bytes_of_work() const;
  std::vector<int64_t> half() const;  ///< the shape of a real array's spectrum
  std::vector<int64_t> shape_in() const { return real_out ? half() : n; }
  std::vector<int64_t> shape_out() const { return real_in ? half() : n; }
  size_t size_in() const { return (f64 ? 8u : 4u) * (real_in ? 1u : 2u); }
  size_t size_out() const { return (f64 ? 8u : 4u) * (real_out ? 1u : 2u); }
  /// As laid out for a call; real rows are padded to their spectrum's length if the call is in place.
  Plan placed(bool in_place) const;
};

cuda::LibraryOperand operand(const char* name, const void* at, bool written, const Lattice& lattice,
                             const std::vector<int64_t>& shape, int64_t batches, size_t size);
/// `plan` is placed. Real transforms need no direction.
void run(const Plan& plan, const void* in, void* out, bool inverse);

}  // namespace emulator::fft
