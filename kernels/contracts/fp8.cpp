// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fp8.h"

#include "kernels/contracts/matmul.h"

namespace weft::kernels {
namespace {

bool is_one_f32(const View& view) { return view && view.dtype == DType::f32 && view.numel() == 1; }

/// Codes of `rows` rows of `columns`, which begin at multiples of 16 bytes.
bool has_room(const View& view, int64_t rows, int64_t columns) {
  return view.dtype == DType::u8 && view.rank == 2 && view.sizes[0] == rows && view.sizes[1] == columns &&
         (columns <= 1 || view.strides[1] == 1) && view.strides[0] % 16 == 0 && view.strides[0] >= fp8_pitch(columns) &&
         reinterpret_cast<uintptr_t>(view.data) % 16 == 0;
}

bool is_matrix_of_codes(const View& view) {
  return view.dtype == DType::u8 && view.rank == 2 && (view.sizes[1] <= 1 || view.strides[1] == 1);
}

}  // namespace

void check_fp8_quantize(const View& y, const View& y_t, const View& amax, const View& x, const View& scale) {
  WEFT_CHECK(x.rank == 2 && (x.dtype == DType::f32 || x.dtype == DType::bf16) && (x.sizes[1] <= 1 || x.strides[1] == 1),
             "fp8_quantize: expected f32 or bf16 [rows, columns] with dense rows, got ", x);
  WEFT_CHECK(!y || has_room(y, x.sizes[0], x.sizes[1]), "fp8_quantize: expected codes u8[", x.sizes[0], ",", x.sizes[1],
             "] whose rows begin at multiples of 16 bytes, got ", y, " with pitch ", y.strides[0]);
  WEFT_CHECK(!y_t || has_room(y_t, x.sizes[1], x.sizes[0]), "fp8_quantize: expected transposed codes u8[", x.sizes[1],
             ",", x.sizes[0], "] whose rows begin at multiples of 16 bytes, got ", y_t, " with pitch ", y_t.strides[0]);
  WEFT_CHECK((is_one_f32(scale) || (!scale && !y && !y_t)) && (!amax || is_one_f32(amax)),
             "fp8_quantize: expected a scale f32[1], and amax f32[1] or none, got ", scale, " and ", amax);
}

void check_fp8_update_scale(const View& scale, const View& amaxes, const View& latest,
                            const Fp8ScaleArguments& arguments) {
  WEFT_CHECK(scale.dtype == DType::f32 && amaxes.dtype == DType::f32 && scale.rank == 1 && amaxes.rank == 2 &&
                 scale.is_contiguous() && amaxes.is_contiguous() && amaxes.sizes[0] == scale.sizes[0] &&
                 amaxes.sizes[1] >= 1 &&
                 (!latest || (latest.dtype == DType::f32 && latest.same_sizes(scale) && latest.is_contiguous())),
             "fp8_update_scale: expected dense f32 scale [n], amaxes [n, history] and latest [n] or none, got ", scale,
             ", ", amaxes, " and ", latest);
  WEFT_CHECK(arguments.gradients >= 0 && arguments.gradients <= scale.sizes[0], "fp8_update_scale: expected 0 to ",
             scale.sizes[0], " rows of gradients, got ", arguments.gradients);
}

void check_fp8_matmul(const View& y, const View& pre, const View& a, const View& b, const View& bias,
                      const View& a_scale, const View& b_scale) {
  WEFT_CHECK(y.rank == 2 && is_matrix_of_codes(a) && is_matrix_of_codes(b) && a.sizes[0] == y.sizes[0] &&
                 b.sizes[0] == y.sizes[1] && a.sizes[1] == b.sizes[1],
             "fp8_matmul: expected [M,N] = u8[M,K] @ u8[N,K]^T with dense rows of codes, got ", y, " = ", a, " @ ", b,
             "^T");
  WEFT_CHECK((y.dtype == DType::bf16 || y.dtype == DType::f32) && y.is_contiguous(),
             "fp8_matmul: expected a dense result in bf16 or f32, got ", y);
  WEFT_CHECK(!pre || is_laid_out_as(pre, y), "fp8_matmul: expected pre laid out as ", y, ", got ", pre);
  WEFT_CHECK(!bias || (bias.rank == 1 && bias.sizes[0] == y.sizes[1] && (bias.sizes[0] <= 1 || bias.strides[0] == 1) &&
                       (bias.dtype == DType::bf16 || bias.dtype == DType::f32)),
             "fp8_matmul: expected a dense bias [", y.sizes[1], "] in bf16 or f32, got ", bias);
  WEFT_CHECK(is_one_f32(a_scale) && is_one_f32(b_scale), "fp8_matmul: expected two scales f32[1], got ", a_scale,
             " and ", b_scale);
  WEFT_CHECK(y.sizes[0] < int64_t{1} << 31 && y.sizes[1] < int64_t{1} << 31 && a.sizes[1] < int64_t{1} << 31,
             "fp8_matmul: expected sizes below 2^31, got ", y, " = ", a, " @ ", b, "^T");
}

}  // namespace weft::kernels
