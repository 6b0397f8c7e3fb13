// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/simt/hopper.h"
#include "tests/simt/instruction_test.h"

// wgmma against a reckoning in whole numbers, which f32 sums hold exactly: all layouts of its operands.

namespace weft::tests {
namespace {

namespace device = kernels::WEFT_DEVICE;
using device::Swizzle;
using device::WgmmaOperand;

constexpr int kDepth = 64;

/// A matrix [rows, 64] of small whole numbers, and its image in shared memory.
struct Operand {
  Operand(int rows_, Swizzle swizzle, bool along_rows, bool is_bf16) : rows(rows_) {
    static std::mt19937 generator{std::random_device{}()};
    std::uniform_int_distribution<int> uniform(-8, 8);
    for (int i = 0; i < rows * kDepth; ++i) values.push_back(uniform(generator));
    for (const int v : values)
      bits.push_back(is_bf16 ? bf16(static_cast<float>(v)).bits : f16(static_cast<float>(v)).bits);
    lay_out(swizzle, along_rows);
  }

  void lay_out(Swizzle swizzle, bool along_rows) {
    const int line = swizzle == Swizzle::bytes128  ? 128
                     : swizzle == Swizzle::bytes64 ? 64
                     : swizzle == Swizzle::bytes32 ? 32
                                                   : 16;
    const int per_line = line / 2;
    const int padded = along_rows ? (rows + per_line - 1) / per_line * per_line : rows;
    image.assign(static_cast<size_t>(padded) * kDepth * 2, 0xff);
    const auto put = [&](int row, int k, size_t byte) {
      std::memcpy(image.data() + byte, &bits[static_cast<size_t>(row * kDepth + k)], 2);
    };
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < kDepth; ++k) {
        if (swizzle == Swizzle::none) {  // 8x8 elements of 128 bytes: first all rows, then the next 8 of depth
          const int in_line = along_rows ? row % 8 : k % 8, of_line = along_rows ? k % 8 : row % 8;
          put(row, k, static_cast<size_t>((k / 8 * (rows / 8) + row / 8) * 128 + of_line * 16 + in_line * 2));
          continue;
        }
        const int along = along_rows ? row : k, across = along_rows ? k : row;
        const int lines = along_rows ? kDepth : rows;
        const int run = along % per_line / 8;
        const int moved = swizzle == Swizzle::bytes128  ? run ^ (across % 8)
                          : swizzle == Swizzle::bytes64 ? run ^ (across / 2 % 4)
                                                        : run ^ (across / 4 % 2);
        put(row, k, static_cast<size_t>((along / per_line * lines + across) * line + moved * 16 + along % 8 * 2));
      }
    described = {nullptr, static_cast<int>(image.size()), swizzle, 0, 0, {}};
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t k = 16 * i, r = static_cast<uint32_t>(rows), l = static_cast<uint32_t>(line);
      described.steps[i] = swizzle == Swizzle::none ? k / 8 * (r / 8) * 128
                           : along_rows             ? k * l
                                                    : k / (l / 2) * r * l + k % (l / 2) * 2;
    }
    const uint32_t r = static_cast<uint32_t>(rows), l = static_cast<uint32_t>(line);
    described.stride = swizzle == Swizzle::none ? 128 : 8 * l;
    described.leading = swizzle == Swizzle::none ? r / 8 * 128 : along_rows ? kDepth * l : 0;
  }

  int rows;
  std::vector<int> values;
  std::vector<uint16_t> bits;
  std::vector<uint8_t> image;
  WgmmaOperand described{};
};

void expect_exact(int n, Swizzle swizzle_a, Swizzle swizzle_b, bool rows_a, bool rows_b, bool registers, bool is_bf16,
                  bool accumulate) {
  const Operand a(64, swizzle_a, rows_a, is_bf16), b(n, swizzle_b, rows_b, is_bf16);
  const Array<uint8_t> a_image(a.image), b_image(b.image);
  const Array<uint16_t> a_values(a.bits);
  std::vector<float> before(static_cast<size_t>(64 * n));
  for (size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i % 100);
  for_each_schedule([&] {
    const Array<float> d(before);
    device::WgmmaProblem problem{d.data(),        n,          rows_a,      rows_b,     is_bf16, registers,
                                 a_values.data(), accumulate, a.described, b.described};
    problem.a.image = a_image.data();
    problem.b.image = b_image.data();
    device::wgmma_problem(kQueue, problem);
    const std::vector<float> got = d.host();
    for (int row = 0; row < 64; ++row)
      for (int column = 0; column < n; ++column) {
        const size_t i = static_cast<size_t>(row * n + column);
        int sum = accumulate ? static_cast<int>(before[i]) : 0;
        for (int k = 0; k < kDepth; ++k)
          sum += a.values[static_cast<size_t>(row * kDepth + k)] * b.values[static_cast<size_t>(column * kDepth + k)];
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
        expect_exact(64, swizzle, swizzle, rows_a, rows_b, false, true, false);
      }
  expect_exact(64, Swizzle::bytes128, Swizzle::bytes32, false, true, false, true, true);
}

TEST_F(Wgmma, AllWidths) {
  for (const int n : {32, 64, 96, 128, 192, 256})
    for (const bool rows_b : {false, true}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", along rows " << rows_b);
      expect_exact(n, Swizzle::bytes128, Swizzle::bytes128, false, rows_b, false, true, true);
    }
}

TEST_F(Wgmma, FirstOperandFromRegisters) {
  for (const Swizzle swizzle : kSwizzles)
    for (const bool rows_b : {false, true}) expect_exact(128, Swizzle::none, swizzle, false, rows_b, true, true, false);
}

TEST_F(Wgmma, HalfPrecision) {
  for (const bool registers : {false, true})
    expect_exact(64, Swizzle::bytes128, Swizzle::bytes64, false, false, registers, false, true);
}

}  // namespace
}  // namespace weft::tests
