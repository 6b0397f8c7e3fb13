// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "tests/hopper/hopper.h"
#include "tests/hopper/instruction_test.h"

// wgmma against a reference in whole numbers, which f32 sums hold exactly: all layouts of its operands.

namespace weft::tests {
namespace {

namespace device = kernels::cuda;
using device::Swizzle;
using device::WgmmaOperand;
using kernels::Fp8;

/// Bytes of depth that all four steps of a problem multiply.
constexpr int kDepthBytes = 128;

/// A small whole number as `dtype` (u8: `format`) holds it. f32 is tf32 with something in the lower 13 bits, which
/// wgmma must cut off.
uint32_t bits_of(int value, DType dtype, Fp8 format) {
  if (dtype == DType::u8) return kernels::to_fp8(format, static_cast<float>(value));
  if (dtype == DType::bf16) return bf16(static_cast<float>(value)).bits;
  if (dtype == DType::f16) return f16(static_cast<float>(value)).bits;
  return std::bit_cast<uint32_t>(static_cast<float>(value)) | static_cast<uint32_t>(generator()() & 0x1fffu);
}

/// A matrix [rows, depth] of small whole numbers, and its image in shared memory.
struct Operand {
  Operand(int rows_, Swizzle swizzle, bool along_rows, DType dtype, Fp8 format)
      : rows(rows_), size(static_cast<int>(size_of(dtype))), depth(kDepthBytes / size) {
    for (int i = 0; i < rows * depth; ++i) {
      values.push_back(static_cast<int>(pick(-8, 8)));
      bits.push_back(bits_of(values.back(), dtype, format));
    }
    lay_out(swizzle, along_rows);
  }

  void lay_out(Swizzle swizzle, bool along_rows) {
    const int line = swizzle == Swizzle::bytes128  ? 128
                     : swizzle == Swizzle::bytes64 ? 64
                     : swizzle == Swizzle::bytes32 ? 32
                                                   : 16;
    const int per_line = line / size, per_run = 16 / size;
    const int padded = along_rows ? (rows + per_line - 1) / per_line * per_line : rows;
    image.assign(static_cast<size_t>(padded) * kDepthBytes, 0xff);
    const auto put = [&](int row, int k, int byte) {
      std::memcpy(image.data() + byte, &bits[static_cast<size_t>(row * depth + k)], static_cast<size_t>(size));
    };
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < depth; ++k) {
        if (swizzle == Swizzle::none) {  // 8 lines of 16 bytes: first all rows, then the next 16 bytes of depth
          const int in_line = along_rows ? row % per_run : k % per_run, of_line = along_rows ? k % 8 : row % 8;
          put(row, k, (k / per_run * (rows / 8) + row / 8) * 128 + of_line * 16 + in_line * size);
          continue;
        }
        const int along = along_rows ? row : k, across = along_rows ? k : row;
        const int lines = along_rows ? depth : rows;
        const int run = along % per_line / per_run;
        const int moved = swizzle == Swizzle::bytes128  ? run ^ (across % 8)
                          : swizzle == Swizzle::bytes64 ? run ^ (across / 2 % 4)
                                                        : run ^ (across / 4 % 2);
        put(row, k, (along / per_line * lines + across) * line + moved * 16 + along % per_run * size);
      }
    described = {nullptr, static_cast<int>(image.size()), swizzle, 0, 0, {}};
    for (int i = 0; i < 4; ++i) {
      const int k = 32 / size * i;
      described.steps[static_cast<size_t>(i)] =
          static_cast<uint32_t>(swizzle == Swizzle::none ? k / per_run * (rows / 8) * 128
                                : along_rows             ? k * line
                                                         : k / per_line * rows * line + k % per_line * size);
    }
    const uint32_t r = static_cast<uint32_t>(rows), l = static_cast<uint32_t>(line);
    described.stride = swizzle == Swizzle::none ? 128 : 8 * l;
    described.leading = swizzle == Swizzle::none ? r / 8 * 128 : along_rows ? static_cast<uint32_t>(depth) * l : 0;
  }

  int rows, size, depth;  ///< size: bytes of an element
  std::vector<int> values;
  std::vector<uint32_t> bits;
  std::vector<uint8_t> image;
  WgmmaOperand described{};
};

/// format: of a's 8 bits; b has e4m3.
void expect_exact(int n, Swizzle swizzle_a, Swizzle swizzle_b, bool rows_a, bool rows_b, bool registers, DType dtype,
                  bool accumulate, Fp8 format = Fp8::e4m3) {
  const Operand a(64, swizzle_a, rows_a, dtype, format), b(n, swizzle_b, rows_b, dtype, Fp8::e4m3);
  const Array<uint8_t> a_image(a.image), b_image(b.image);
  const Array<uint16_t> a_values(std::vector<uint16_t>(a.bits.begin(), a.bits.end()));
  std::vector<float> before(static_cast<size_t>(64 * n));
  for (size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i % 100);
  in_orders(2, [&] {
    const Array<float> d(before);
    device::WgmmaProblem problem{d.data(),        n,          rows_a,      rows_b,     dtype, format, registers,
                                 a_values.data(), accumulate, a.described, b.described};
    problem.a.image = a_image.data();
    problem.b.image = b_image.data();
    device::wgmma_problem(kQueue, problem);
    const std::vector<float> got = d.host();
    for (int row = 0; row < 64; ++row)
      for (int column = 0; column < n; ++column) {
        const size_t i = static_cast<size_t>(row * n + column);
        int sum = accumulate ? static_cast<int>(before[i]) : 0;
        for (int k = 0; k < a.depth; ++k)
          sum += a.values[static_cast<size_t>(row * a.depth + k)] * b.values[static_cast<size_t>(column * b.depth + k)];
        ASSERT_EQ(got[i], static_cast<float>(sum)) << "row " << row << ", column " << column;
      }
  });
}

constexpr Swizzle kSwizzles[] = {Swizzle::none, Swizzle::bytes32, Swizzle::bytes64, Swizzle::bytes128};

class Wgmma : public OnHopper<testing::Test> {};

TEST_F(Wgmma, AllLayoutsOfBothOperands) {
  for (const Swizzle swizzle : kSwizzles)
    for (const bool rows_a : {false, true})
      for (const bool rows_b : {false, true}) {
        SCOPED_TRACE(testing::Message() << "swizzle " << static_cast<int>(swizzle) << ", along rows " << rows_a
                                        << rows_b);
        expect_exact(64, swizzle, swizzle, rows_a, rows_b, false, DType::bf16, false);
      }
  expect_exact(64, Swizzle::bytes128, Swizzle::bytes32, false, true, false, DType::bf16, true);
}

TEST_F(Wgmma, AllWidths) {
  for (const int n : {32, 64, 96, 128, 192, 256})
    for (const bool rows_b : {false, true}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", along rows " << rows_b);
      expect_exact(n, Swizzle::bytes128, Swizzle::bytes128, false, rows_b, false, DType::bf16, true);
    }
  for (const bool rows_a : {false, true})  // with sums of rows
    expect_exact(8, Swizzle::bytes128, Swizzle::none, rows_a, false, false, DType::bf16, true);
}

TEST_F(Wgmma, FirstOperandFromRegisters) {
  for (const Swizzle swizzle : kSwizzles)
    for (const bool rows_b : {false, true})
      expect_exact(128, Swizzle::none, swizzle, false, rows_b, true, DType::bf16, false);
}

TEST_F(Wgmma, HalfPrecision) {
  for (const bool registers : {false, true})
    expect_exact(64, Swizzle::bytes128, Swizzle::bytes64, false, false, registers, DType::f16, true);
}

// f32 whose lower 13 bits hold anything: the sums are those of the upper bits, exactly.
TEST_F(Wgmma, Tf32CutsTheLowerBitsOff) {
  for (const Swizzle swizzle : kSwizzles)
    for (const int n : {64, 128, 256}) {
      SCOPED_TRACE(testing::Message() << "swizzle " << static_cast<int>(swizzle) << ", n " << n);
      expect_exact(n, swizzle, swizzle, false, false, false, DType::f32, n == 128);
    }
  expect_exact(64, Swizzle::bytes128, Swizzle::bytes32, false, false, false, DType::f32, true);
}

// Whole numbers below 2^13, which a tensor core's shorter sums of 8 bits hold exactly, too.
TEST_F(Wgmma, EightBits) {
  for (const Fp8 format : {Fp8::e4m3, Fp8::e5m2})
    for (const Swizzle swizzle : kSwizzles)
      for (const int n : {64, 128, 256}) {
        SCOPED_TRACE(testing::Message() << "format " << static_cast<int>(format) << ", swizzle "
                                        << static_cast<int>(swizzle) << ", n " << n);
        expect_exact(n, swizzle, swizzle, false, false, false, DType::u8, n == 128, format);
      }
}

}  // namespace
}  // namespace weft::tests
