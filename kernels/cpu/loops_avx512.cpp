// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/philox_loops.h"
#include "kernels/cpu/row_loops.h"
#include "kernels/cpu/unary_loops.h"
#include "kernels/cpu/winograd_loops.h"

namespace weft::kernels::cpu {

const PanelKernel<float>& panel_f32_avx512() { return PanelLoops<float, 16, 12>::kTable; }
const PanelKernel<double>& panel_f64_avx512() { return PanelLoops<double, 8, 12>::kTable; }
const RowLoops<float>& rows_f32_avx512() { return RowLoopsOf<float, 16>::kTable; }
const RowLoops<double>& rows_f64_avx512() { return RowLoopsOf<double, 8>::kTable; }
const WinogradKernels& winograd_avx512() { return Winograd<16, 12>::kTable; }
const PhiloxLoops& philox_avx512() { return PhiloxLoopsOf<8>::kTable; }
const MathLoops& math_avx512() { return kMathLoops; }

}  // namespace weft::kernels::cpu
