// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <span>
#include <vector>

#include "emulator/cublaslt/problem.h"

// Three algorithms, which differ as those of a GPU do: in the alignment that they need, and in workspace.

namespace emulator::lt {

enum class Method : int {
  aligned = 0,  ///< like tensor-core kernels: pointers and leading dimensions are multiples of 16 bytes
  any = 1,      ///< no more alignment than the elements'
  split_k = 2,  ///< as `any`; slices of the depth are summed separately in the workspace and added in a fixed order
};
constexpr int kMethods = 3;

Algorithm make_algorithm(Method method, const Types& types);
/// Failure: it is configured as no algorithm here can be, was made for other types, or needs more alignment than the
/// leading dimensions have.
void require_fit(const Algorithm& algorithm, const Problem& problem);
size_t workspace_bytes(const Algorithm& algorithm, const Problem& problem);
/// Bytes that an operand's pointer, leading dimension and batch stride must be a multiple of.
size_t alignment_of(const Algorithm& algorithm, cudaDataType_t type);
/// The algorithms that the preference allows, the fastest first.
std::vector<Algorithm> find_algorithms(const Problem& problem, const Preference& preference, int processors);
float waves_of(const Algorithm& algorithm, const Problem& problem, int processors);
void get_capability(const Algorithm& algorithm, cublasLtMatmulAlgoCapAttributes_t attribute, void* value, size_t bytes,
                    size_t* written);

}  // namespace emulator::lt
