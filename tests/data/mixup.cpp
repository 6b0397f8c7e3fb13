// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/mixup.h"

#include <cmath>

#include "core/ops/copy.h"
#include "tests/data/fixture.h"
#include "tests/support/devices.h"

namespace weft::data::testing {
namespace {

Tensor random_images(int64_t n, int64_t height, int64_t width) {
  const std::vector<uint8_t> bytes = random_bytes(n * height * width * 3);
  std::vector<float> values(bytes.begin(), bytes.end());
  return Tensor::from(values, {n, height, width, 3});
}

TEST(Mixup, BlendsImagesAndTargetsByTheSameShare) {
  Draw draw(std::random_device{}(), 1);
  const Tensor images = random_images(4, 3, 2), labels = Tensor::from(std::vector<int64_t>{2, 0, 1, 0});
  const MixedBatch mixed = mixup(images, labels, 3, 0.4, draw);
  const std::vector<float> x = images.to_vector<float>(), y = mixed.images.to_vector<float>();
  const std::vector<float> target = mixed.targets.to_vector<float>();
  const float own = target[0 * 3 + 2];
  EXPECT_NEAR(target[0 * 3 + 0], 1 - own, 1e-6);  // the neighbour of the first is the last
  EXPECT_NEAR(target[3 * 3 + 0], own, 1e-6);
  EXPECT_NEAR(target[3 * 3 + 1], 1 - own, 1e-6);
  for (int64_t n = 0; n < 4; ++n)
    for (int64_t i = 0; i < 18; ++i)
      EXPECT_NEAR(y[n * 18 + i], own * x[n * 18 + i] + (1 - own) * x[(n + 3) % 4 * 18 + i], 1e-3);
}

TEST(Cutmix, PastesABoxAndMixesTargetsByItsArea) {
  Draw draw(std::random_device{}(), 1);
  for (int round = 0; round < 20; ++round) {
    const Tensor images = random_images(3, 8, 9), labels = Tensor::from(std::vector<int64_t>{0, 1, 2});
    const MixedBatch mixed = cutmix(images, labels, 3, 1.0, draw);
    const std::vector<float> x = images.to_vector<float>(), y = mixed.images.to_vector<float>();
    const std::vector<float> target = mixed.targets.to_vector<float>();
    for (int64_t n = 0; n < 3; ++n) {
      int64_t own = 0;
      for (int64_t p = 0; p < 72; ++p) {
        const auto same = [&](int64_t other) {
          for (int64_t c = 0; c < 3; ++c)
            if (y[n * 216 + 3 * p + c] != x[other * 216 + 3 * p + c]) return false;
          return true;
        };
        ASSERT_TRUE(same(n) || same((n + 2) % 3));
        own += same(n);
      }
      EXPECT_NEAR(target[n * 3 + n], static_cast<double>(own) / 72, 1.5 / 72);
      EXPECT_NEAR(target[n * 3 + n] + target[n * 3 + (n + 2) % 3], 1, 1e-6);
    }
  }
}

/// On a device without labels on the host, in the dtypes that models see.
TEST(Mixup, IsTheSameBitsOnEveryDevice) {
  const std::vector<int64_t> labels{2, 0, 1, 0, 2};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor images = random_images(5, 7, 8).to(dtype);
    for (const DeviceKind kind : tests::test_devices()) {
      const Device device{kind, 0};
      for (const uint64_t key : {uint64_t{1}, uint64_t{std::random_device{}()}})
        for (const auto mix : {&mixup, &cutmix}) {
          Draw here(key, 3), there(key, 3);
          const MixedBatch want = mix(images, Tensor::from(labels), 3, 0.7, here);
          const MixedBatch got = mix(images.to(device), Tensor::from(labels, device), 3, 0.7, there);
          EXPECT_EQ(got.images.device(), device);
          EXPECT_EQ(got.images.dtype(), dtype);
          EXPECT_EQ(got.images.to(DType::f32).to_vector<float>(), want.images.to(DType::f32).to_vector<float>())
              << name(kind);
          EXPECT_EQ(got.targets.to_vector<float>(), want.targets.to_vector<float>()) << name(kind);
        }
    }
  }
}

TEST(Mixup, RefusesWhatDoesNotFit) {
  Draw draw(1, 1);
  const Tensor images = random_images(2, 2, 2), labels = Tensor::from(std::vector<int64_t>{0, 5});
  EXPECT_THAT(error_text([&] { mixup(images, labels, 5, 0.2, draw); }),
              HasSubstr("mixed_targets: expected labels 0 to 4, got 5 in row 1"));
  EXPECT_THAT(error_text([&] { cutmix(images, labels, 6, 0, draw); }), HasSubstr("cutmix: expected an alpha above 0"));
  EXPECT_THAT(error_text([&] { mixup(images, images, 6, 1, draw); }),
              HasSubstr("expected labels i64[2], got f32[2,2,2,3]"));
  EXPECT_THAT(error_text([&] { mixup(labels, labels, 6, 1, draw); }),
              HasSubstr("floating images [N, H, W, C], got i64[2]"));
}

TEST(SymmetricBeta, HasItsMeanAndVariance) {
  Draw draw(std::random_device{}(), 1);
  for (const double alpha : {1e-3, 0.2, 1.0, 3.0}) {
    constexpr int kCount = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kCount; ++i) {
      const double value = detail::symmetric_beta(alpha, draw);
      ASSERT_TRUE(value >= 0 && value <= 1);
      sum += value, squares += (value - 0.5) * (value - 0.5);
    }
    EXPECT_NEAR(sum / kCount, 0.5, 6 * 0.5 / std::sqrt(kCount));
    EXPECT_NEAR(squares / kCount, 1 / (4 * (2 * alpha + 1)), 6 * 0.25 / std::sqrt(kCount));
  }
}

}  // namespace
}  // namespace weft::data::testing
