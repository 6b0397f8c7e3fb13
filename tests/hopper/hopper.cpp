// SPDX-License-Identifier: Apache-2.0
#include "tests/hopper/hopper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "tests/hopper/instruction_test.h"

// TMA, stmatrix and named barriers, byte by byte against a reference on the host.

namespace weft::tests {
namespace {

namespace device = kernels::cuda;
using device::Place;
using device::Swizzle;
using device::TensorMap;
using device::TiledTensor;
using testing::HasSubstr;

std::vector<uint16_t> numbered(size_t count) {
  std::vector<uint16_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint16_t>(i + 1);
  return values;
}

/// The position of byte `i` of the box's plain order, as tensor_map.cuh defines it.
size_t place_of_byte(size_t i, size_t line_bytes, Swizzle swizzle) {
  const size_t line = i / line_bytes, run = i % line_bytes / 16;
  size_t moved = run;
  if (swizzle == Swizzle::bytes128) moved = run ^ (line % 8);
  if (swizzle == Swizzle::bytes64) moved = run ^ (line / 2 % 4);
  if (swizzle == Swizzle::bytes32) moved = run ^ (line / 4 % 2);
  return line * line_bytes + moved * 16 + i % 16;
}

struct TiledCase {
  int rank;
  std::array<int64_t, 5> sizes;
  int64_t padding;  ///< elements after each line
  std::array<int, 5> box;
  std::array<int, 4> at;
  Swizzle swizzle;
};

class Tiled : public OnHopper<testing::TestWithParam<TiledCase>> {
 protected:
  int64_t pitch(int dimension) const {  // elements
    const TiledCase& c = GetParam();
    int64_t pitch = 1;
    for (int d = 0; d < dimension; ++d) pitch = pitch * c.sizes[d] + (d == 0 ? c.padding : 0);
    return pitch;
  }
  TensorMap map(uint16_t* data) const {
    const TiledCase& c = GetParam();
    TiledTensor tensor{data, DType::bf16, c.rank, c.sizes, {}, c.box, c.swizzle};
    for (int d = 1; d < c.rank; ++d) tensor.pitches[d - 1] = pitch(d) * 2;
    return device::tiled_map("test", tensor);
  }
  size_t tensor_elements() const { return static_cast<size_t>(pitch(GetParam().rank)); }
  int box_elements() const {
    int n = 1;
    for (int d = 0; d < GetParam().rank; ++d) n *= GetParam().box[d];
    return n;
  }
  /// visit(element of the box, element of the tensor or -1)
  template <class Visit>
  void for_each(Visit&& visit) const {
    const TiledCase& c = GetParam();
    for (int i = 0; i < box_elements(); ++i) {
      int64_t rest = i, element = 0;
      bool inside = true;
      for (int d = 0; d < c.rank; ++d) {
        const int64_t x = c.at[d] + rest % c.box[d];
        rest /= c.box[d];
        inside = inside && x >= 0 && x < c.sizes[d];
        element += x * pitch(d);
      }
      visit(static_cast<size_t>(i), inside ? element : -1);
    }
  }
  uint16_t at_place(const std::vector<uint8_t>& image, size_t i) const {
    const size_t line = static_cast<size_t>(GetParam().box[0]) * 2;
    return static_cast<uint16_t>(image[place_of_byte(2 * i, line, GetParam().swizzle)] |
                                 image[place_of_byte(2 * i + 1, line, GetParam().swizzle)] << 8);
  }
};

TEST_P(Tiled, LoadPutsEveryElementInItsPlace) {
  const std::vector<uint16_t> values = numbered(tensor_elements());
  const Array<uint16_t> tensor(values);
  const int bytes = box_elements() * 2;
  const Array<uint8_t> image(static_cast<size_t>(bytes));
  in_orders(2, [&] {
    device::load_box(kQueue, image.data(), map(tensor.data()), GetParam().rank, {GetParam().at, {}}, bytes);
    const std::vector<uint8_t> got = image.host();
    for_each([&](size_t i, int64_t element) {
      ASSERT_EQ(at_place(got, i), element < 0 ? 0 : values[static_cast<size_t>(element)]) << "element " << i;
    });
  });
}

/// Stores of two or three dimensions, from coordinates of 0 or above.
class TiledStore : public Tiled {};

TEST_P(TiledStore, WritesWhatIsInTheTensor) {
  const int bytes = box_elements() * 2;
  std::vector<uint8_t> image(static_cast<size_t>(bytes));
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(i * 7 + i / 256);
  const Array<uint8_t> from(image);
  in_orders(2, [&] {
    std::vector<uint16_t> expected(tensor_elements(), 9);
    const Array<uint16_t> tensor(expected);
    device::store_box(kQueue, map(tensor.data()), GetParam().rank, {GetParam().at, {}}, from.data(), bytes);
    for_each([&](size_t i, int64_t element) {
      if (element >= 0) expected[static_cast<size_t>(element)] = at_place(image, i);
    });
    EXPECT_EQ(tensor.host(), expected);
  });
}

constexpr TiledCase kFlat[] = {{2, {64, 40}, 0, {64, 16}, {0, 8}, Swizzle::bytes128},
                               {2, {128, 40}, 8, {64, 32}, {64, 16}, Swizzle::bytes128},
                               {2, {96, 20}, 0, {32, 24}, {64, -3}, Swizzle::bytes64},
                               {2, {24, 20}, 0, {16, 20}, {16, 2}, Swizzle::bytes32},
                               {2, {40, 9}, 8, {24, 5}, {-8, 6}, Swizzle::none},
                               {2, {264, 9}, 0, {256, 3}, {8, 1}, Swizzle::none},
                               {3, {72, 5, 4}, 0, {64, 3, 2}, {16, 3, 1}, Swizzle::bytes128},
                               {3, {32, 6, 3}, 16, {32, 4, 3}, {0, -1, 1}, Swizzle::bytes64}};
constexpr TiledCase kDeep[] = {{4, {64, 5, 6, 3}, 0, {64, 4, 3, 2}, {0, 2, 4, 2}, Swizzle::bytes128},
                               {4, {16, 5, 6, 3}, 0, {16, 4, 3, 2}, {8, -1, -2, -1}, Swizzle::bytes32}};
INSTANTIATE_TEST_SUITE_P(Flat, Tiled, testing::ValuesIn(kFlat));
INSTANTIATE_TEST_SUITE_P(Deep, Tiled, testing::ValuesIn(kDeep));
std::vector<TiledCase> stored() {
  std::vector<TiledCase> cases(std::begin(kFlat), std::end(kFlat));
  std::erase_if(cases, [](const TiledCase& c) { return std::ranges::any_of(c.at, [](int x) { return x < 0; }); });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Flat, TiledStore, testing::ValuesIn(stored()));

class HopperDeathTest : public OnHopper<testing::Test> {};

// In a process of its own, whose context the error ends.
TEST_F(HopperDeathTest, AStoreMayNotBeginBeforeTheTensor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto store_at = [](int x, int y) {
    const Array<uint16_t> tensor(std::vector<uint16_t>(64 * 40));
    const Array<uint8_t> from(std::vector<uint8_t>(64 * 16 * 2));
    const TensorMap map =
        device::tiled_map("test", {tensor.data(), DType::bf16, 2, {64, 40}, {128}, {64, 16}, Swizzle::bytes128});
    const std::string error = error_of([&] {
      device::store_box(kQueue, map, 2, {{x, y, 0, 0}, {}}, from.data(), 64 * 16 * 2);
      tensor.host();
    });
    std::fputs(error.c_str(), stderr);
    std::_Exit(error.empty() ? 0 : 1);
  };
  EXPECT_EXIT(store_at(0, -1), testing::ExitedWithCode(1), "illegal instruction");
  EXPECT_EXIT(store_at(-8, 0), testing::ExitedWithCode(1), "illegal instruction");
  EXPECT_EXIT(store_at(8, 39), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(store_at(4, 0), testing::ExitedWithCode(1), "illegal instruction");
}

TEST_F(HopperDeathTest, ALoadBeginsAtAMultipleOf16Bytes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto load_at = [](int x) {
    const Array<uint16_t> tensor(std::vector<uint16_t>(264 * 9));
    const Array<uint8_t> to(std::vector<uint8_t>(64 * 3 * 2));
    const TensorMap map =
        device::tiled_map("test", {tensor.data(), DType::bf16, 2, {264, 9}, {528}, {64, 3}, Swizzle::none});
    const std::string error = error_of([&] {
      device::load_box(kQueue, to.data(), map, 2, {{x, 1, 0, 0}, {}}, 64 * 3 * 2);
      to.host();
    });
    std::fputs(error.c_str(), stderr);
    std::_Exit(error.empty() ? 0 : 1);
  };
  EXPECT_EXIT(load_at(5), testing::ExitedWithCode(1), "illegal instruction");
  EXPECT_EXIT(load_at(8), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(load_at(-8), testing::ExitedWithCode(0), "");
}

struct Im2colCase {
  int64_t n, h, w, c;
  int kernel, padding, stride, dilation;
  int channels, pixels, first_pixel, first_channel;
  Swizzle swizzle;
};

class Im2col : public OnHopper<testing::TestWithParam<Im2colCase>> {};

TEST_P(Im2col, EveryPixelOfEveryOffset) {
  const Im2colCase& p = GetParam();
  const std::vector<uint16_t> values = numbered(static_cast<size_t>(p.n * p.h * p.w * p.c));
  const Array<uint16_t> x(values);
  const int reach = (p.kernel - 1) * p.dilation;
  const int64_t out_h = (p.h + 2 * p.padding - reach - 1) / p.stride + 1;
  const int64_t out_w = (p.w + 2 * p.padding - reach - 1) / p.stride + 1;
  const TensorMap map =
      device::im2col_map("test", {x.data(), DType::bf16, p.n, p.h, p.w, p.c, -p.padding, -p.padding, p.padding - reach,
                                  p.padding - reach, p.stride, p.stride, p.channels, p.pixels, p.swizzle});
  const int bytes = p.channels * p.pixels * 2;
  const Array<uint8_t> image(static_cast<size_t>(bytes));
  const auto corner = [&](int64_t pixel) {
    struct {
      int64_t n, h, w;
    } at{pixel / (out_h * out_w), pixel / out_w % out_h * p.stride - p.padding, pixel % out_w * p.stride - p.padding};
    return at;
  };
  in_orders(2, [&] {
    for (int kh = 0; kh < p.kernel; ++kh)
      for (int kw = 0; kw < p.kernel; ++kw) {
        const auto first = corner(p.first_pixel);
        const Place place{
            {p.first_channel, static_cast<int>(first.w), static_cast<int>(first.h), static_cast<int>(first.n)},
            {kw * p.dilation, kh * p.dilation}};
        device::load_box(kQueue, image.data(), map, 0, place, bytes);
        const std::vector<uint8_t> got = image.host();
        for (int i = 0; i < p.pixels; ++i) {
          const auto at = corner(p.first_pixel + i);
          const int64_t h = at.h + kh * p.dilation, w = at.w + kw * p.dilation;
          for (int c = 0; c < p.channels; ++c) {
            const int64_t channel = p.first_channel + c;
            const bool inside = at.n < p.n && h >= 0 && h < p.h && w >= 0 && w < p.w && channel < p.c;
            const size_t element = static_cast<size_t>(((at.n * p.h + h) * p.w + w) * p.c + channel);
            const size_t byte = 2 * static_cast<size_t>(i * p.channels + c), line = static_cast<size_t>(p.channels) * 2;
            ASSERT_EQ(got[place_of_byte(byte, line, p.swizzle)] | got[place_of_byte(byte + 1, line, p.swizzle)] << 8,
                      inside ? values[element] : 0)
                << "pixel " << i << ", channel " << c << ", offset " << kh << "," << kw;
          }
        }
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Images, Im2col,
                         testing::Values(Im2colCase{2, 5, 6, 64, 3, 1, 1, 1, 64, 16, 0, 0, Swizzle::bytes128},
                                         Im2colCase{2, 5, 6, 64, 3, 1, 1, 1, 64, 40, 25, 0, Swizzle::bytes128},
                                         Im2colCase{3, 7, 7, 40, 3, 1, 2, 1, 32, 20, 7, 32, Swizzle::bytes64},
                                         Im2colCase{2, 8, 9, 16, 3, 2, 1, 2, 16, 33, 5, 0, Swizzle::bytes32},
                                         Im2colCase{2, 6, 5, 8, 1, 0, 1, 1, 8, 64, 0, 0, Swizzle::none}));

class Hopper : public OnHopper<testing::Test> {};

// The stem's convolution reads packed rows as windows that begin 16 bytes apart and are 128 bytes long.
TEST_F(Hopper, PixelsOfAnIm2colMapMayOverlap) {
  constexpr int kN = 2, kH = 3, kW = 10, kChannels = 64, kApart = 8, kRow = (kW - 1) * kApart + kChannels, kPixels = 32;
  const std::vector<uint16_t> values = numbered(kN * kH * kRow);
  const Array<uint16_t> x(values);
  const TensorMap map = device::im2col_map("test", {x.data(),
                                                    DType::bf16,
                                                    kN,
                                                    kH,
                                                    kW,
                                                    kChannels,
                                                    -1,
                                                    0,
                                                    -1,
                                                    0,
                                                    1,
                                                    1,
                                                    kChannels,
                                                    kPixels,
                                                    Swizzle::bytes128,
                                                    {2 * kApart, 2 * kRow, 2 * kRow * kH}});
  const Array<uint8_t> image(kPixels * 128);
  for (const int first : {0, 7, 45})  // among the positions (n, h, w), with a row above the images' own
    for (const int down : {0, 1}) {
      const int first_h = first / kW % kH - 1;
      device::load_box(kQueue, image.data(), map, 0, {{0, first % kW, first_h, first / kW / kH}, {0, down}},
                       kPixels * 128);
      const std::vector<uint8_t> got = image.host();
      for (int i = 0; i < kPixels; ++i) {
        const int at = first + i, w = at % kW, h = at / kW % kH - 1 + down, n = at / kW / kH;
        const bool inside = n < kN && h >= 0 && h < kH;
        for (int c = 0; c < kChannels; ++c) {
          const size_t byte = 2 * static_cast<size_t>(i * kChannels + c);
          ASSERT_EQ(got[place_of_byte(byte, 128, Swizzle::bytes128)] |
                        got[place_of_byte(byte + 1, 128, Swizzle::bytes128)] << 8,
                    inside ? values[static_cast<size_t>((n * kH + h) * kRow + w * kApart + c)] : 0)
              << "pixel " << i << " of " << first << ", channel " << c << ", offset " << down;
        }
      }
    }
}

// Attention reads [B, H, N, D] as rows of heads: there the heads lie further apart than the rows.
TEST_F(Hopper, StridesOfATiledMapMayComeInAnyOrder) {
  constexpr int kHeads = 3, kRows = 6, kChannels = 64;
  const std::vector<uint16_t> values = numbered(kHeads * kRows * kChannels);
  const Array<uint16_t> x(values);
  const TensorMap map = device::tiled_map("test", {x.data(),
                                                   DType::bf16,
                                                   3,
                                                   {kChannels, kHeads, kRows},
                                                   {2 * kRows * kChannels, 2 * kChannels},
                                                   {kChannels, 1, 4},
                                                   Swizzle::bytes128});
  const Array<uint8_t> image(4 * 128);
  for (int head = 0; head < kHeads; ++head)
    for (const int first : {0, 4}) {
      device::load_box(kQueue, image.data(), map, 3, {{0, head, first}, {}}, 4 * 128);
      const std::vector<uint8_t> got = image.host();
      for (int i = 0; i < 4 * kChannels; ++i) {
        const int row = first + i / kChannels;
        const size_t byte = 2 * static_cast<size_t>(i);
        ASSERT_EQ(got[place_of_byte(byte, 128, Swizzle::bytes128)] |
                      got[place_of_byte(byte + 1, 128, Swizzle::bytes128)] << 8,
                  row < kRows ? values[static_cast<size_t>((head * kRows + row) * kChannels + i % kChannels)] : 0)
            << "head " << head << ", element " << i;
      }
    }
}

// f32 that a map calls tf32: 10 bits of significand, to nearest, ties to even; infinities and NaN pass. Without that
// word all 32 bits arrive.
TEST_F(Hopper, LoadsRoundToTf32WhereTheMapSaysSo) {
  struct {
    uint32_t bits, rounded;
  } constexpr kCases[] = {{0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000}, {0x3f801000, 0x3f800000},
                          {0x3f801001, 0x3f802000}, {0x3f802fff, 0x3f802000}, {0x3f803000, 0x3f804000},
                          {0xbf801000, 0xbf800000}, {0xbf803000, 0xbf804000}, {0x3ffff000, 0x40000000},
                          {0x3fffefff, 0x3fffe000}, {0x7f7fffff, 0x7f800000}, {0x7f800000, 0x7f800000},
                          {0xff800000, 0xff800000}, {0x00800000, 0x00800000}, {0x80000000, 0x80000000}};
  constexpr int kCount = std::size(kCases), kChannels = 32, kLines = 8;
  std::vector<uint32_t> values(kChannels * kLines);
  for (size_t i = 0; i < values.size(); ++i) values[i] = kCases[i % kCount].bits;
  values[40] = 0x7fc12345;  // NaN
  const Array<uint32_t> x(values);
  const Array<uint8_t> image(kLines * 128);
  const auto expect_loaded = [&](const TensorMap& map, int rank, bool rounds) {
    in_orders(2, [&] {
      device::load_box(kQueue, image.data(), map, rank, {{0, 0, 0, 0}, {}}, kLines * 128);
      const std::vector<uint8_t> got = image.host();
      for (size_t i = 0; i < values.size(); ++i) {
        uint32_t bits = 0;
        std::memcpy(&bits, got.data() + place_of_byte(4 * i, 128, Swizzle::bytes128), 4);
        if (i == 40)
          EXPECT_TRUE(std::isnan(std::bit_cast<float>(bits))) << bits;
        else
          ASSERT_EQ(bits, rounds ? kCases[i % kCount].rounded : values[i]) << "element " << i;
      }
    });
  };
  for (const bool rounds : {false, true}) {
    SCOPED_TRACE(rounds ? "as tf32" : "as f32");
    TiledTensor tiled{x.data(), DType::f32, 2, {kChannels, kLines}, {128}, {kChannels, kLines}, Swizzle::bytes128};
    tiled.rounds_to_tf32 = rounds;
    expect_loaded(device::tiled_map("test", tiled), 2, rounds);
    device::Im2colTensor images{x.data(), DType::f32, 1, 2,         4,      kChannels,        0, 0, 0,
                                0,        1,          1, kChannels, kLines, Swizzle::bytes128};
    images.rounds_to_tf32 = rounds;
    expect_loaded(device::im2col_map("test", images), 0, rounds);
  }
}

TEST_F(Hopper, StmatrixIsTheReverseOfLdmatrix) {
  std::vector<uint32_t> registers(4 * 32);
  for (size_t i = 0; i < registers.size(); ++i) registers[i] = static_cast<uint32_t>(2 * i + ((2 * i + 1) << 16));
  const Array<uint32_t> from(registers);
  const Array<uint16_t> out(4 * 64);
  for (const bool transposed : {false, true})
    in_orders(2, [&] {
      device::store_matrices(kQueue, out.data(), from.data(), transposed);
      const std::vector<uint16_t> got = out.host();
      for (size_t m = 0; m < 4; ++m)
        for (size_t row = 0; row < 8; ++row)
          for (size_t column = 0; column < 8; ++column) {
            const size_t i = transposed ? column * 8 + row : row * 8 + column;  // element i is in lane i / 2
            ASSERT_EQ(got[m * 64 + row * 8 + column], static_cast<uint16_t>(2 * (m * 32 + i / 2) + i % 2));
          }
    });
}

TEST_F(Hopper, NamedBarriersAndRegisters) {
  const Array<int> out(384);
  in_orders(2, [&] {
    device::warpgroups_talk(kQueue, out.data());
    const std::vector<int> got = out.host();
    int elected = 0;
    for (int t = 0; t < 128; ++t) elected += got[static_cast<size_t>(t)];
    EXPECT_EQ(elected, 4);
    for (int t = 0; t < 256; ++t)
      ASSERT_EQ(got[static_cast<size_t>(128 + t)], 4 * (1000 * (t / 128) + 127 - t % 128) + 60);
  });
}

TEST_F(Hopper, TensorMapsAreRefusedAsTheDriverDoes) {
  const Array<uint16_t> data(64 * 64);
  const TiledTensor good{data.data(), DType::bf16, 2, {64, 64}, {128}, {64, 8}, Swizzle::bytes128};
  const auto error = [&](auto&& change) {
    TiledTensor tensor = good;
    change(tensor);
    return error_of([&] { device::tiled_map("k", tensor); });
  };
  EXPECT_EQ(error([](TiledTensor&) {}), "");
  EXPECT_THAT(error([&](TiledTensor& t) { t.data = data.data() + 1; }),
              HasSubstr("k: a tensor map wants an address that is a multiple of 16, got 0x"));
  EXPECT_THAT(error([](TiledTensor& t) { t.pitches[0] = 136; }),
              HasSubstr("k: a tensor map wants pitches that are multiples of 16 bytes below 2^40, got 136"));
  EXPECT_THAT(error([](TiledTensor& t) { t.pitches[0] = int64_t{1} << 40; }),
              HasSubstr("below 2^40, got 1099511627776"));
  EXPECT_THAT(error([](TiledTensor& t) { t.box[1] = 257; }),
              HasSubstr("k: a tensor map's box has 1 to 256 elements in each dimension, got 257"));
  EXPECT_THAT(error([](TiledTensor& t) { t.box[0] = 32; }),
              HasSubstr("k: a line of 64 bytes in a tensor map's box: expected the 128 of its swizzle"));
  EXPECT_THAT(
      error([](TiledTensor& t) { t.box[0] = 12; }),
      HasSubstr("k: a line of 12 bf16 in a tensor map's box: expected 1 to 256 elements, a multiple of 16 bytes"));
  EXPECT_THAT(error([](TiledTensor& t) { t.rounds_to_tf32 = true; }),
              HasSubstr("k: a tensor map that rounds to tf32: expected f32, got bf16"));
  EXPECT_THAT(error([](TiledTensor& t) { t.rank = 6; }), HasSubstr("k: a tensor map has 1 to 5 dimensions, got 6"));
  EXPECT_THAT(error([](TiledTensor& t) { t.sizes[1] = 0; }),
              HasSubstr("k: a tensor map wants sizes from 1 to 2^32 elements, got 0"));
}

TEST_F(Hopper, Im2colMapsAreRefusedAsTheDriverDoes) {
  const Array<uint16_t> data(8 * 8 * 64);
  using device::Im2colTensor;
  const Im2colTensor good{data.data(), DType::bf16, 1, 8, 8, 64, -1, -1, -1, -1, 1, 1, 64, 32, Swizzle::bytes128};
  const auto error = [&](auto&& change) {
    Im2colTensor tensor = good;
    change(tensor);
    return error_of([&] { device::im2col_map("k", tensor); });
  };
  EXPECT_EQ(error([](Im2colTensor&) {}), "");
  EXPECT_EQ(error([](Im2colTensor& t) { t.stride_h = t.stride_w = 8; }), "");
  EXPECT_THAT(error([](Im2colTensor& t) { t.c = 60; }),
              HasSubstr("k: an im2col tensor map wants pitches that are multiples of 16 bytes below 2^40, got 120"));
  EXPECT_THAT(error([](Im2colTensor& t) { t.pitches = {128, 1000, 8192}; }), HasSubstr("below 2^40, got 1000"));
  EXPECT_THAT(error([](Im2colTensor& t) { t.pixels = 1025; }),
              HasSubstr("k: an im2col tensor map loads 1 to 1024 pixels, got 1025"));
  EXPECT_THAT(error([](Im2colTensor& t) { t.lower_w = -129; }),
              HasSubstr("k: an im2col tensor map's corners are from -128 to 127, got -129"));
  EXPECT_THAT(error([](Im2colTensor& t) { t.stride_h = 9; }),
              HasSubstr("k: an im2col tensor map's strides are from 1 to 8, got 9"));
  EXPECT_THAT(error([](Im2colTensor& t) { t.upper_h = -9; }),
              HasSubstr("k: an im2col tensor map has no window in images of 8x8"));
}

// load_box() uses 8 more bytes for its barrier.
TEST_F(Hopper, ALaunchThatDoesNotFitIsNamed) {
  const Array<uint16_t> data(64 * 64);
  const Array<uint8_t> image(1);
  const TensorMap map =
      device::tiled_map("test", {data.data(), DType::bf16, 2, {64, 64}, {128}, {64, 8}, Swizzle::bytes128});
  EXPECT_THAT(error_of([&] { device::load_box(kQueue, image.data(), map, 2, {}, 227 * 1024 + 1); }),
              HasSubstr("load_box: grid (1,1,1), block (128,1,1), 232449 bytes of dynamic shared memory: the device "
                        "allows less dynamic shared memory: invalid argument"));
}

}  // namespace
}  // namespace weft::tests
