// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/unary_loops.h"
#include "kernels/cpu/winograd_loops.h"

namespace weft::kernels::cpu {

const PanelKernel<float>& panel_f32_avx2() { return PanelLoops<float, 8, 6>::kTable; }
const PanelKernel<double>& panel_f64_avx2() { return PanelLoops<double, 4, 6>::kTable; }
const WinogradKernels& winograd_avx2() { return Winograd<8, 6>::kTable; }
const MathLoops& math_avx2() { return kMathLoops; }

}  // namespace weft::kernels::cpu
