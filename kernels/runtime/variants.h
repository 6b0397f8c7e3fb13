// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace weft::kernels {

/// Ways that differ from the default and give the same results up to rounding. Each waits for a measurement in a whole
/// step on a GPU, which decides between the two; the loser goes, and its name with it.
enum class Variant {
  dense_logits,     ///< `linear` and `matmul` leave no gaps between rows, and cross entropy converts 16 bits to f32
  chunked_loss,     ///< benchmarks' GPT steps take Gpt::loss()
  looped_moments,   ///< batch statistics in wgmma's epilogue are summed by a loop instead of tensor cores
  scaled_branches,  ///< LayerScale is a pass over a branch's results instead of a factor of its last weight
  whole_masks,  ///< batch norm's backward reads y for the mask of a ReLU on a residual instead of a bit for each number
  pdl,          ///< kernels on wgmma may begin before the previous kernel of their stream ends (launch_overlapped.cuh)
  two_backward_kernels,  ///< attention's backward computes dq apart from dk and dv, as for long sequences
};

/// Whether the variant is taken: as choose_variants() said last, else WEFT_VARIANT, names separated by commas. Errors:
/// WEFT_VARIANT has an unknown name.
bool takes(Variant variant);

/// The names, separated by commas, instead of all chosen so far; empty: none. For the whole process. Errors: an unknown
/// name.
void choose_variants(std::string_view names);

}  // namespace weft::kernels
