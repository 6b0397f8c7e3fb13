// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/philox_loops.h"
#include "kernels/cpu/row_loops.h"
#include "kernels/cpu/unary_loops.h"
#include "kernels/cpu/winograd_loops.h"

namespace weft::kernels::cpu {

const PanelKernel<float>& panel_f32_avx2() { return PanelLoops<float, 8, 6>::kTable; }
const PanelKernel<double>& panel_f64_avx2() { return PanelLoops<double, 4, 6>::kTable; }
const RowLoops<float>& rows_f32_avx2() { return RowLoopsOf<float, 8>::kTable; }
const RowLoops<double>& rows_f64_avx2() { return RowLoopsOf<double, 4>::kTable; }
const WinogradKernels& winograd_avx2() { return Winograd<8, 6>::kTable; }
const PhiloxLoops& philox_avx2() { return PhiloxLoopsOf<4>::kTable; }
const MathLoops& math_avx2() { return kMathLoops; }

}  // namespace weft::kernels::cpu
