// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

#include "kernels/dtype.h"

// How TMA reads and writes a tensor in global memory: maps are made on the host and passed to kernels by value, as
// `const __grid_constant__ TensorMap`. Source of the rules: CUDA driver API, "Tensor Map Object Management".
//
// A map may declare f32 elements as tf32 (CU_TENSOR_MAP_DATA_TYPE_TFLOAT32). Loads then round them to 10 bits of
// significand, to nearest, ties to even; infinities and NaN are unchanged. NVIDIA's page names the type and says no
// more; that loads round is how CUTLASS feeds f32 to wgmma, and ties and specials are as Triton's tests of TMA measure
// them (pull request 11751). tests/hopper asks the GPU.

namespace weft::kernels::cuda {

/// The driver's 128 opaque bytes. CUtensorMap is aligned to 64 bytes in CUDA 12 and to 128 in CUDA 13.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

/// A tile's layout in shared memory, with lines of as many bytes as the name says: the 16-byte run r of line l is at
/// position r ^ (l mod 8) for 128 bytes; r ^ (l / 2 mod 4) for 64, r ^ (l / 4 mod 2) for 32. So 8 lines read at the
/// same r fall into different banks. The values are those of wgmma's matrix descriptor.
enum class Swizzle : uint32_t { none = 0, bytes128 = 1, bytes64 = 2, bytes32 = 3 };

/// A tensor of up to 5 dimensions, innermost first, cut into boxes.
struct TiledTensor {
  const void* data;  ///< aligned to 16 bytes
  DType dtype;
  int rank;
  std::array<int64_t, 5> sizes;    ///< elements
  std::array<int64_t, 4> pitches;  ///< bytes from one element of dimension 1, 2, … to the next; multiples of 16
  std::array<int, 5> box;          ///< elements, at most 256 each; with a swizzle box[0] fills its bytes
  Swizzle swizzle;
  bool rounds_to_tf32 = false;  ///< f32 only: loads round
};

/// The map of a tiled tensor. Elements outside of the tensor are read as 0 and not written.
/// Errors: weft::Error naming `kernel` and the argument that the driver refuses (alignment, pitches, box), or a driver
/// without TMA.
TensorMap tiled_map(const char* kernel, const TiledTensor& tensor);

/// Images [N,H,W,C] for loads of `pixels` windows with `channels` channels each (tma_load_im2col).
struct Im2colTensor {
  const void* data;  ///< aligned to 16 bytes
  DType dtype;
  int64_t n, h, w, c;
  int lower_h, lower_w;  ///< first corner of a window's box: minus the padding above and left
  int upper_h,
      upper_w;  ///< last corner, counted from h - 1 and w - 1: padding below and right minus (kernel - 1) dilation
  int stride_h, stride_w;  ///< pixels from window to window, 1 to 8
  int channels, pixels;    ///< channels at most 256, pixels at most 1024
  Swizzle swizzle;
  /// Bytes from pixel to pixel, row to row, image to image, multiples of 16; pixels may overlap. 0: dense.
  std::array<int64_t, 3> pitches{};
  bool rounds_to_tf32 = false;  ///< f32 only: rounding of loads
};

/// Like tiled_map, for im2col loads. Pixels outside of the image are read as 0.
TensorMap im2col_map(const char* kernel, const Im2colTensor& tensor);

}  // namespace weft::kernels::cuda
