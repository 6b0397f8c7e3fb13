// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "data/pipeline.h"
#include "data/policy.h"
#include "data/transforms/affine.h"
#include "data/transforms/auto_augment.h"
#include "data/transforms/color.h"
#include "data/transforms/crop.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

Image random_image(int64_t height, int64_t width, int64_t channels, int64_t label = 3) {
  return {random_bytes(static_cast<size_t>(height * width * channels)), height, width, channels, label};
}

Draw random_draw() { return Draw(std::random_device{}(), std::random_device{}()); }

TEST(AugmentOp, KeepsSizeAndLabelAtEveryStrengthForAnyImage) {
  for (const auto& [height, width] : {std::pair{1, 1}, std::pair{2, 9}, std::pair{11, 3}})
    for (int64_t channels = 1; channels <= 4; ++channels) {
      const Image image = random_image(height, width, channels, 7);
      for (int i = 0; i < kAugmentOps; ++i)
        for (const int bin : {0, 17, 30})
          for (const Sampling sampling : {Sampling::nearest, Sampling::bilinear}) {
            const auto op = static_cast<AugmentOp>(i);
            const double strength = magnitude(op, bin, kTrivialAugmentSpace, height, width);
            for (const double sign : {1.0, is_signed(op) ? -1.0 : 1.0}) {
              const Image out = apply(op, sign * strength, image, {.sampling = sampling});
              EXPECT_EQ(out.pixels.size(), image.pixels.size()) << name(op);
              EXPECT_EQ(out.label, 7) << name(op);
              EXPECT_EQ(out.height, height) << name(op);
              EXPECT_EQ(out.channels, channels) << name(op);
            }
          }
    }
}

TEST(AugmentOp, MovesWhatItSays) {
  const Image image = random_image(5, 6, 3);
  const Image moved = translate(image, 2, -1, {9, 8, 7});
  for (int64_t y = 0; y < 5; ++y)
    for (int64_t x = 0; x < 6; ++x)
      for (int64_t c = 0; c < 3; ++c) {
        const bool is_inside = x >= 2 && y + 1 < 5;
        EXPECT_EQ(moved.row(y)[3 * x + c], is_inside ? image.row(y + 1)[3 * (x - 2) + c] : 9 - c);
      }
  Image turned = random_image(6, 6, 3);
  const Image start = turned;
  for (int quarter = 0; quarter < 4; ++quarter) turned = rotate(turned, 90, {.sampling = Sampling::bilinear});
  EXPECT_EQ(turned.pixels, start.pixels);
  EXPECT_EQ(rotate(start, 90).row(0)[0], start.row(0)[3 * 5]);  // counter-clockwise: the right edge comes up
}

TEST(AugmentOp, RefusesWhatCannotBe) {
  const Image image = random_image(4, 4, 3);
  EXPECT_THAT(error_text([&] { posterize(image, 9); }), HasSubstr("expected 0 to 8 bits, got 9"));
  EXPECT_THAT(error_text([&] { hue(image, -0.6); }), HasSubstr("from -0.5 to 0.5, got -0.6"));
  EXPECT_THAT(error_text([&] { brightness(image, -0.1); }), HasSubstr("brightness: expected a factor of at least 0"));
  EXPECT_THAT(error_text([&] { sharpness(image, -1); }), HasSubstr("sharpness: expected a factor of at least 0"));
  EXPECT_THAT(error_text([&] { translate(image, 0, 0, {1}); }), HasSubstr("a fill of 3 channels, got 1"));
  EXPECT_THAT(error_text([&] { blend(random_image(4, 5, 3), image, 1); }), HasSubstr("images of one size"));
  EXPECT_THAT(error_text([&] { look_up(image, std::vector<Lookup>(1)); }),
              HasSubstr("3 tables, one per channel, got 1"));
  EXPECT_THAT(error_text([] { affine(black_image(2, 2, 5), {}); }), HasSubstr("1 to 4 channels, got 5"));
  EXPECT_THAT(error_text([] { magnitude(AugmentOp::rotate, 31, kRandAugmentSpace, 8, 8); }),
              HasSubstr("a magnitude from 0 to 30, got 31"));
  Draw draw = random_draw();
  EXPECT_THAT(error_text([&] { rand_augment(image, {.ops = -1}, draw); }), HasSubstr("at least 0 ops, got -1"));
}

TEST(RandomErasing, FillsOneBoxOfTheAllowedAreaAsOftenAsAsked) {
  Draw draw = random_draw();
  int erased = 0;
  double least = 1, most = 0;
  for (int i = 0; i < 2000; ++i) {
    Image white = black_image(40, 50, 3);
    std::fill(white.pixels.begin(), white.pixels.end(), uint8_t{255});
    const Image out = random_erasing(white, {.probability = 0.25, .fill = {1, 2, 3}}, draw);
    int64_t count = 0, top = 40, bottom = -1, left = 50, right = -1;
    for (int64_t y = 0; y < 40; ++y)
      for (int64_t x = 0; x < 50; ++x) {
        const uint8_t* pixel = out.row(y) + 3 * x;
        if (pixel[0] == 255) continue;
        EXPECT_EQ(std::vector<uint8_t>(pixel, pixel + 3), (std::vector<uint8_t>{1, 2, 3}));
        ++count;
        top = std::min(top, y), bottom = std::max(bottom, y), left = std::min(left, x), right = std::max(right, x);
      }
    if (count == 0) continue;
    ++erased;
    EXPECT_EQ(count, (bottom - top + 1) * (right - left + 1));  // a whole box
    least = std::min(least, static_cast<double>(count) / 2000),
    most = std::max(most, static_cast<double>(count) / 2000);
  }
  EXPECT_NEAR(erased, 500, 6 * std::sqrt(2000 * 0.25 * 0.75));
  EXPECT_GT(least, 0.015);
  EXPECT_LT(least, 0.06);
  EXPECT_GT(most, 0.25);
  EXPECT_LT(most, 0.36);
  const Image image = random_image(8, 8, 1);
  EXPECT_EQ(random_erasing(image, {.probability = 0}, draw).pixels, image.pixels);
  EXPECT_THAT(error_text([&] { random_erasing(image, {.probability = 2}, draw); }), HasSubstr("from 0 to 1, got 2"));
  EXPECT_THAT(error_text([&] { random_erasing(image, {.least_area = 0.5}, draw); }), HasSubstr("least <= most"));
  EXPECT_THAT(error_text([&] { random_erasing(image, {.fill = {1, 2}}, draw); }), HasSubstr("1 channels, got 2"));
}

/// How often a policy applies each op, by the results on an image for which all ops differ.
std::map<std::vector<uint8_t>, int> outcomes(const ImagePolicy& policy, const Image& image, int times) {
  std::map<std::vector<uint8_t>, int> seen;
  Draw draw = random_draw();
  for (int i = 0; i < times; ++i) ++seen[policy(image, draw).pixels];
  return seen;
}

TEST(Policy, RandAugmentTakesEachOpAsOften) {
  const Image image = random_image(12, 12, 3);
  const auto seen = outcomes(make_policy("randaugment:1,20"), image, 14000);
  for (int i = 0; i < kAugmentOps - 1; ++i) {
    const auto op = static_cast<AugmentOp>(i);
    const double strength = magnitude(op, 20, kRandAugmentSpace, 12, 12);
    int count = 0;
    std::set<std::vector<uint8_t>> results{apply(op, strength, image).pixels};
    if (is_signed(op)) results.insert(apply(op, -strength, image).pixels);
    for (const auto& pixels : results) count += seen.contains(pixels) ? seen.at(pixels) : 0;
    // autocontrast keeps an image that has all bytes, and so may others: at least as often as their share
    EXPECT_GT(count, 1000 - 6 * 31) << name(op);
  }
  EXPECT_FALSE(seen.contains(apply(AugmentOp::invert, 0, image).pixels));
}

TEST(Policy, TrivialAugmentReachesEveryMagnitude) {
  const Image image = random_image(12, 12, 3);
  const auto seen = outcomes(make_policy("trivialaugment"), image, 40000);
  for (int bin = 0; bin < 31; ++bin)
    for (const double sign : {-1.0, 1.0})
      EXPECT_TRUE(seen.contains(
          apply(AugmentOp::rotate, sign * magnitude(AugmentOp::rotate, bin, kTrivialAugmentSpace, 12, 12), image)
              .pixels))
          << bin;
}

TEST(Policy, AutoAugmentAppliesPairsWithTheirProbabilities) {
  const Image image = random_image(24, 24, 3);
  // Pairs whose ops are certain: what comes out of "invert 0.6, equalize 1.0" must be among the results.
  const auto seen = outcomes(make_policy("autoaugment:imagenet"), image, 10000);
  const Image equalized = apply(AugmentOp::equalize, 0, image);
  const Image both = apply(AugmentOp::equalize, 0, apply(AugmentOp::invert, 0, image));
  EXPECT_GT(seen.at(equalized.pixels), 100);
  EXPECT_NEAR(seen.at(both.pixels), 10000 * 2 / 25.0 * 0.6, 6 * std::sqrt(480.0));
}

TEST(Policy, IsAFunctionOfImageAndDraw) {
  const Image image = random_image(20, 30, 3);
  for (const std::string& one : policy_names()) {
    std::set<std::vector<uint8_t>> different;
    for (uint64_t counter = 0; counter < 20; ++counter) {
      Draw a(5, counter), b(5, counter);
      const Image first = make_policy(one)(image, a), second = make_policy(one)(image, b);
      EXPECT_EQ(first.pixels, second.pixels) << one;
      different.insert(first.pixels);
    }
    EXPECT_GT(different.size(), 5u) << one;
  }
}

TEST(Policy, RefusesUnknownNamesAndNumbers) {
  EXPECT_THAT(error_text([] { make_policy("autoaugmnt"); }), HasSubstr("Did you mean 'autoaugment'?"));
  EXPECT_THAT(error_text([] { make_policy("autoaugment:cifar"); }), HasSubstr("Did you mean 'cifar10'?"));
  EXPECT_THAT(error_text([] { make_policy("trivialaugment:2"); }), HasSubstr("it has nothing to tune"));
  EXPECT_THAT(error_text([] { make_policy("randaugment:"); }), HasSubstr("something after the colon"));
  for (const char* text : {"2", "2,", "2,31", "0,9", "17,9", "-1,9", "2,9,1", "2;9", "a,b", "2,-1", " 2,9"})
    EXPECT_THAT(error_text([&] { make_policy(str("randaugment:", text)); }), HasSubstr("expected randaugment:N,M"))
        << text;
}

TEST(Pipeline, ResolvesWhatTheUserLeavesOpen) {
  const auto resolved = [](const char* text, const char* set) { return resolve_pipeline(text, set); };
  EXPECT_EQ(resolved("auto", "cifar100:/x"), "cifar");
  EXPECT_EQ(resolved("standard", "folder:/x"), "imagenet");
  EXPECT_EQ(resolved("autoaugment", "cifar100:/x"), "cifar+autoaugment:cifar10");
  EXPECT_EQ(resolved("autoaugment", "folder:/x"), "imagenet+autoaugment");
  EXPECT_EQ(resolved("autoaugment:svhn", "cifar10:/x"), "cifar+autoaugment:svhn");
  EXPECT_EQ(resolved("randaugment:3,5", "shapes"), "shapes+randaugment:3,5");
  EXPECT_EQ(resolved("flip+trivialaugment", "folder:/x"), "flip+trivialaugment");
  EXPECT_EQ(resolved("standard+trivialaugment", "cifar10:/x"), "cifar+trivialaugment");
  EXPECT_EQ(resolved("resize", "folder:/x"), "resize");
  EXPECT_THAT(error_text([&] { resolved("cifar+", "shapes"); }), HasSubstr("unknown policy ''"));
  EXPECT_THAT(error_text([&] { resolved("nonne", "shapes"); }), HasSubstr("Did you mean 'none'?"));
}

TEST(Pipeline, ErasingComesLastInTheImageAsTheModelSeesIt) {
  Image white = black_image(16, 16, 3);
  std::fill(white.pixels.begin(), white.pixels.end(), uint8_t{255});
  const PipelineOptions options{.erasing = {.probability = 1, .fill = {9, 9, 9}}};
  const Pipeline pipeline = make_pipeline("cifar", Split::train, options);
  EXPECT_FALSE(pipeline.place);  // settled before the box is drawn
  for (int i = 0; i < 50; ++i) {
    Draw draw = random_draw();
    const Image out = pipeline.prepare(white, draw);
    std::map<uint8_t, int> counts;
    for (const uint8_t value : out.pixels) ++counts[value];
    EXPECT_GT(counts[9], 0);
    for (const auto& [value, count] : counts) EXPECT_TRUE(value == 0 || value == 9 || value == 255);
  }
  EXPECT_FALSE(make_pipeline("cifar", Split::val, options).prepare);
}

TEST(Pipeline, PoliciesChangeTrainingAlone) {
  const Image image = random_image(40, 40, 3);  // no shift, of 32 pixels at most, leaves nothing of it
  const PipelineOptions options{.jitter = {.brightness = 0.5}};
  for (const char* text : {"cifar+randaugment:2,9", "imagenet:16+autoaugment", "none+trivialaugment"}) {
    const Pipeline train = make_pipeline(text, Split::train, options), val = make_pipeline(text, Split::val, options);
    Draw a = random_draw(), b = random_draw();
    EXPECT_NE(train.prepare(image, a).pixels, train.prepare(image, b).pixels) << text;
    if (val.prepare) {
      EXPECT_EQ(val.prepare(image, a).pixels, val.prepare(image, b).pixels) << text;
    }
  }
  EXPECT_THAT(error_text([] { make_pipeline("none", Split::train, {.jitter = {.hue = 1}}); }),
              HasSubstr("at most 0.5"));
}

}  // namespace
}  // namespace weft::data::testing
