// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cpu/panel_product.h"

namespace weft::kernels::cpu {

// Winograd's F(4x4, 3x3) transforms tiles of 4x4 outputs and the 6x6 inputs that they need.
inline constexpr int kTile = 4, kPatch = 6, kPlanes = kPatch * kPatch;

/// Where 3x3 filters lie: w[tap * tap_step + depth * depth_step + column * column_step].
struct WinogradFilters {
  const float* w;
  int64_t tap_step, depth_step, column_step;
};

/// Where the 36 values of a transformed tile go, each into a plane of its own: channel c of plane i is data[i * plane +
/// c / panel * panel_step + c % panel]. A panel is a multiple of 16; places of the last panel beyond the channels
/// become 0.
struct WinogradPlanes {
  float* data;
  int64_t plane, panel, panel_step;
};

/// The inner loops of Winograd's convolution (winograd_loops.h), in f32, compiled for one instruction set. `plane` is
/// the distance between planes in floats.
struct WinogradKernels {
  int panel;  ///< columns of a product
  /// v = B^T d B; d points to the channels of each of 36 positions.
  void (*input)(const WinogradPlanes& v, const float* const* d, int64_t channels);
  /// The 16 positions y[channel] = A^T m A + bias.
  void (*output)(float* const* y, const float* m, int64_t plane, const float* bias, int64_t channels);
  /// m = A dy A^T, the adjoint of `output`.
  void (*output_adjoint)(const WinogradPlanes& m, const float* const* dy, int64_t channels);
  /// u[plane, depth, column] = G g G^T for one panel; columns from `columns` on become 0.
  void (*filters)(float* u, int64_t plane, const WinogradFilters& g, int64_t depth, int64_t columns);
  /// dw[tap * tap_step + channel] = G^T u G, the adjoint of `filters`.
  void (*filters_adjoint)(float* dw, int64_t tap_step, const float* u, int64_t plane, int64_t channels);
  void (*product)(const PanelProduct<float>& p);
};

const WinogradKernels& winograd_avx2();    ///< vectors of 8 floats; runs on any processor
const WinogradKernels& winograd_avx512();  ///< vectors of 16 floats, where has_avx512()

}  // namespace weft::kernels::cpu
