// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "data/pipeline.h"
#include "data/transforms/color.h"
#include "data/transforms/crop.h"
#include "data/transforms/normalize.h"
#include "data/transforms/resize.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

Image random_image(int64_t height, int64_t width, int64_t channels, int64_t label = 3) {
  return {random_bytes(static_cast<size_t>(height * width * channels)), height, width, channels, label};
}

Image mirrored(const Image& image) {
  Image out = black_image(image.height, image.width, image.channels, image.label);
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x)
      std::copy_n(image.row(y) + (image.width - 1 - x) * image.channels, image.channels,
                  out.row(y) + x * image.channels);
  return out;
}

Draw random_draw() { return Draw(std::random_device{}(), std::random_device{}()); }

TEST(Resize, EqualsPillow) {
  const Image source = read_ppm(golden("source.ppm"));
  const int sizes[][2] = {{10, 7}, {37, 11}, {61, 40}, {18, 46}, {1, 1}, {37, 23}};
  for (const auto& [width, height] : sizes)
    for (const auto& [filter, word] :
         {std::pair{Filter::bilinear, "bilinear"}, std::pair{Filter::bicubic, "bicubic"}}) {
      const Image expected = read_ppm(golden(str("resize_", word, "_", width, "x", height, ".ppm")));
      const Image got = resize(source, height, width, filter);
      ASSERT_EQ(got.pixels.size(), expected.pixels.size());
      int largest = 0;
      for (size_t i = 0; i < got.pixels.size(); ++i)
        largest = std::max(largest, std::abs(got.pixels[i] - expected.pixels[i]));
      EXPECT_LE(largest, 1) << word << " " << width << "x" << height;
    }
}

TEST(Resize, KeepsConstantsAndLabelsForAnyChannels) {
  for (int64_t channels = 1; channels <= 4; ++channels) {
    Image flat = black_image(13, 9, channels, 7);
    std::fill(flat.pixels.begin(), flat.pixels.end(), uint8_t{201});
    for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
      const Image out = resize(flat, 5, 31, filter);
      EXPECT_EQ(out.label, 7);
      EXPECT_EQ(out.pixels, std::vector<uint8_t>(5 * 31 * channels, 201));
    }
  }
  EXPECT_THAT(error_text([] { resize(black_image(2, 2, 3), 0, 4); }), HasSubstr("at least 1x1, got 0x4"));
  EXPECT_THAT(error_text([] { resize(black_image(2, 2, 5), 4, 4); }), HasSubstr("1 to 4 channels, got 2x2x5"));
}

/// The two passes as plain sums over the taps, with bytes between them.
Image plainly_resized(const Image& x, int64_t height, int64_t width, Filter filter) {
  const auto to_byte = [](int64_t sum) { return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kTapBits, 0, 255)); };
  const int64_t half = 1 << (kTapBits - 1);
  Image between = black_image(x.height, width, x.channels, x.label);
  const Taps across = make_taps(x.width, width, filter), down = make_taps(x.height, height, filter);
  for (int64_t y = 0; y < x.height; ++y)
    for (int64_t q = 0; q < width; ++q)
      for (int64_t c = 0; c < x.channels; ++c) {
        const Taps::Span& span = across.spans[q];
        int64_t sum = half;
        for (int64_t t = 0; t < span.count; ++t)
          sum += int64_t{across.weights[span.at + t]} * x.row(y)[(span.first + t) * x.channels + c];
        between.row(y)[q * x.channels + c] = to_byte(sum);
      }
  Image out = black_image(height, width, x.channels, x.label);
  for (int64_t p = 0; p < height; ++p)
    for (int64_t i = 0; i < width * x.channels; ++i) {
      const Taps::Span& span = down.spans[p];
      int64_t sum = half;
      for (int64_t t = 0; t < span.count; ++t)
        sum += int64_t{down.weights[span.at + t]} * between.row(span.first + t)[i];
      out.row(p)[i] = to_byte(sum);
    }
  return out;
}

TEST(Resize, IsThePlainSumOfItsTaps) {
  const Window windows[] = {{0, 0, 23, 31}, {22, 30, 1, 1}, {0, 0, 1, 1},
                            {5, 7, 18, 24}, {3, 0, 20, 9},  {0, 30, 23, 1}};
  const int64_t sizes[][2] = {{1, 1}, {23, 31}, {7, 5}, {40, 61}, {18, 3}, {1, 90}, {20, 24}};
  for (int64_t channels = 1; channels <= 4; ++channels) {
    const Image image = random_image(23, 31, channels);
    for (const Window& w : windows)
      for (const auto& [height, width] : sizes)
        for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
          const Image cut = crop(image, w.top, w.left, w.height, w.width);
          const Image got = resize(image, w, height, width, filter);
          EXPECT_EQ(got.pixels, plainly_resized(cut, height, width, filter).pixels)
              << w.height << "x" << w.width << " of " << channels << " channels to " << height << "x" << width;
          EXPECT_EQ(got.label, image.label);
        }
  }
  const Image large = random_image(1600, 5, 3);  // more rows between the passes than a thread keeps
  EXPECT_EQ(resize(large, 3, 1000).pixels, plainly_resized(large, 3, 1000, Filter::bilinear).pixels);
  for (const Window& outside :
       {Window{0, 0, 24, 1}, {0, 0, 1, 32}, {-1, 0, 2, 2}, {0, -1, 2, 2}, {0, 0, 0, 1}, {0, 0, 1, 0}})
    EXPECT_THAT(error_text([&] { resize(random_image(23, 31, 3), outside, 4, 4); }),
                HasSubstr("expected a window in the image of 23x31, got "));
}

TEST(Resize, ShortestEdgeKeepsTheRatio) {
  const Image high = resize_shortest_edge(random_image(50, 20, 3), 10);
  EXPECT_EQ(high.height, 25);
  EXPECT_EQ(high.width, 10);
  const Image wide = resize_shortest_edge(random_image(375, 500, 3), 256);
  EXPECT_EQ(wide.height, 256);
  EXPECT_EQ(wide.width, 341);  // int(256 * 500 / 375)
}

TEST(Crop, TakesTheWindowAndPadsWithBlack) {
  const Image image = random_image(6, 5, 3);
  for (const auto& [top, left] : {std::pair{-2, 3}, {1, -2}, {0, -1}, {0, 0}}) {
    const Image out = crop(image, top, left, 7, 4);
    EXPECT_EQ(out.label, 3);
    for (int64_t y = 0; y < 7; ++y)
      for (int64_t x = 0; x < 4; ++x)
        for (int64_t c = 0; c < 3; ++c) {
          const int64_t v = y + top, u = x + left;
          const bool is_inside = v >= 0 && v < 6 && u >= 0 && u < 5;
          EXPECT_EQ(out.row(y)[3 * x + c], is_inside ? image.row(v)[3 * u + c] : 0);
        }
  }
  EXPECT_EQ(crop(image, 100, 100, 2, 2).pixels, std::vector<uint8_t>(12, 0));
  EXPECT_EQ(crop(image, 0, -100, 2, 2).pixels, std::vector<uint8_t>(12, 0));
  EXPECT_THAT(error_text([&] { crop(image, 0, 0, 0, 1); }), HasSubstr("at least 1x1, got 0x1"));
}

TEST(Crop, TheCentreRoundsHalfToEven) {
  const Image image = random_image(7, 9, 1);
  EXPECT_EQ(centre_crop(image, 4, 4).pixels, crop(image, 2, 2, 4, 4).pixels);  // 1.5 -> 2, 2.5 -> 2
  EXPECT_EQ(centre_crop(image, 9, 9).pixels, crop(image, -1, 0, 9, 9).pixels);
}

TEST(Crop, TheOddRowAroundASmallerImageIsBelow) {
  const Image image = random_image(7, 9, 1);
  for (int64_t more = 0; more < 9; ++more) {
    SCOPED_TRACE(more);
    EXPECT_EQ(centre_crop(image, 7 + more, 9 + more).pixels,
              crop(image, -(more / 2), -(more / 2), 7 + more, 9 + more).pixels);
  }
  // 333 x 500 to 700 x 700 as torchvision: 183 black rows above, 184 below.
  const Image large = centre_crop({std::vector<uint8_t>(333 * 500, 1), 333, 500, 1}, 700, 700);
  EXPECT_EQ(large.row(182)[350], 0);
  EXPECT_EQ(large.row(183)[350], 1);
}

TEST(RandomResizedCrop, WindowsAreInsideAndOfTheAllowedAreaAndRatio) {
  Draw draw = random_draw();
  double least = 1e9, most = 0;
  for (int i = 0; i < 2000; ++i) {
    const Window w = random_window(300, 400, {}, draw);
    ASSERT_GE(w.top, 0);
    ASSERT_GE(w.left, 0);
    ASSERT_LE(w.top + w.height, 300);
    ASSERT_LE(w.left + w.width, 400);
    const double share = static_cast<double>(w.height * w.width) / (300.0 * 400);
    least = std::min(least, share), most = std::max(most, share);
    const double ratio = static_cast<double>(w.width) / static_cast<double>(w.height);
    EXPECT_GT(ratio, 0.72);
    EXPECT_LT(ratio, 1.37);
  }
  EXPECT_LT(least, 0.1);
  EXPECT_GT(least, 0.075);
  EXPECT_GT(most, 0.85);
}

TEST(RandomResizedCrop, WindowsReachEveryPlace) {
  Draw draw = random_draw();
  std::set<int64_t> tops, lefts;
  for (int i = 0; i < 500; ++i) {
    const Window w =
        random_window(10, 12, {.least_area = 0.3, .most_area = 0.3, .least_ratio = 1, .most_ratio = 1}, draw);
    ASSERT_EQ(w.height, 6);
    ASSERT_EQ(w.width, 6);
    tops.insert(w.top), lefts.insert(w.left);
  }
  EXPECT_THAT(tops, ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(lefts, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(RandomResizedCrop, FallsBackToTheLargestMiddleWindow) {
  Draw draw = random_draw();
  const Window w = random_window(10, 1000, {.least_area = 0.9}, draw);
  EXPECT_EQ(w.height, 10);
  EXPECT_EQ(w.width, 13);
  EXPECT_EQ(w.left, (1000 - 13) / 2);
  const Window upright = random_window(1000, 10, {.least_area = 0.9}, draw);
  EXPECT_EQ(upright.height, 13);
  EXPECT_EQ(upright.width, 10);
  EXPECT_EQ(upright.top, (1000 - 13) / 2);
  const Window line = random_window(32, 32, {.least_ratio = 100, .most_ratio = 100}, draw);
  EXPECT_EQ(line.height, 1);
  EXPECT_EQ(line.width, 32);
  EXPECT_THAT(error_text([&] { random_window(5, 5, {.least_area = 0}, draw); }), HasSubstr("0 < least <= most"));
  const Image out = random_resized_crop(random_image(1, 1, 3), {.height = 4, .width = 6}, draw);
  EXPECT_EQ(out.height, 4);
  EXPECT_EQ(out.width, 6);
}

TEST(Normalize, IsCropFlipAndScaleInOnePass) {
  const Image image = random_image(6, 5, 3);
  const std::vector<float> mean{0.5f, 0.4f, 0.3f}, std{0.2f, 0.25f, 0.3f};
  const NormalizeTable table(mean, std);
  for (const int flip : {0, 1}) {
    const Place place{-1, 2, flip};
    std::vector<float> y(4 * 5 * 3);
    std::vector<uint8_t> bytes(y.size());
    const ImageView view{image.pixels.data(), 6, 5, 3};
    normalize(y.data(), 4, 5, view, place, table);
    cut_out(bytes.data(), 4, 5, view, place);
    Image expected = crop(image, -1, 2, 4, 5);
    if (flip) expected = mirrored(expected);
    EXPECT_EQ(bytes, expected.pixels);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_FLOAT_EQ(y[i], (static_cast<float>(expected.pixels[i]) / 255 - mean[i % 3]) / std[i % 3]);
  }
  EXPECT_THAT(error_text([] { NormalizeTable({0.5f}, {0.0f}); }), HasSubstr("positive std, got 0 for channel 0"));
  EXPECT_THAT(error_text([] { NormalizeTable({0.5f}, {}); }), HasSubstr("got 1 and 0"));
}

TEST(Normalize, LaysDownAnyWindowOfAnyChannels) {
  const NormalizeTable table({0.5f, 0.4f, 0.3f, 0.2f}, {0.2f, 0.25f, 0.3f, 0.35f});
  for (int64_t channels = 1; channels <= 4; ++channels) {
    const Image image = random_image(6, 5, channels);
    const ImageView view{image.pixels.data(), 6, 5, channels};
    for (const int top : {-9, -4, -1, 0, 2, 5, 6})
      for (const int left : {-9, -3, -1, 0, 1, 4, 5, 8})
        for (const int flip : {0, 1}) {
          std::vector<uint8_t> bytes(4 * 3 * channels, 77);
          std::vector<float> y(bytes.size());
          cut_out(bytes.data(), 4, 3, view, {top, left, flip});
          normalize(y.data(), 4, 3, view, {top, left, flip}, table);
          Image expected = crop(image, top, left, 4, 3);
          if (flip) expected = mirrored(expected);
          ASSERT_EQ(bytes, expected.pixels) << top << ", " << left << " mirrored " << flip;
          for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], table.value[i % channels][expected.pixels[i]]);
        }
  }
  float y = 0;
  const uint8_t pixel[5] = {};
  EXPECT_THAT(error_text([&] {
                normalize(&y, 1, 1, {pixel, 1, 1, 5}, {}, table);
              }),
              HasSubstr("1 to 4 channels, got 5"));
}

TEST(ColorJitter, KeepsTheImageWithoutReachAndMovesItWithin) {
  Image image = random_image(16, 16, 3);
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(60 + value / 4);
  Draw draw = random_draw();
  EXPECT_EQ(color_jitter(image, {}, draw).pixels, image.pixels);
  double darkest = 1, brightest = 1;
  for (int i = 0; i < 50; ++i) {
    const Image out = color_jitter(image, {.brightness = 0.4}, draw);
    const double factor = static_cast<double>(out.pixels[0]) / image.pixels[0];
    darkest = std::min(darkest, factor), brightest = std::max(brightest, factor);
    EXPECT_GT(factor, 0.58);
    EXPECT_LT(factor, 1.42);
    for (size_t p = 0; p < out.pixels.size(); ++p) EXPECT_NEAR(out.pixels[p], factor * image.pixels[p], 3);
  }
  EXPECT_LT(darkest, 0.8);
  EXPECT_GT(brightest, 1.2);
  EXPECT_NE(color_jitter(image, {.contrast = 0.5, .saturation = 0.5}, draw).pixels, image.pixels);
  EXPECT_NE(color_jitter(image, {.hue = 0.5}, draw).pixels, image.pixels);
  EXPECT_THAT(error_text([&] { color_jitter(image, {.contrast = -1}, draw); }), HasSubstr("at least 0"));
  EXPECT_THAT(error_text([&] { color_jitter(image, {.hue = 0.6}, draw); }), HasSubstr("a hue of at most 0.5, got 0.6"));
}

TEST(Draw, IsAFunctionOfKeyAndCounter) {
  const uint64_t key = std::random_device{}(), counter = std::random_device{}();
  Draw a(key, counter), b(key, counter), c(key, counter + 1);
  bool all_equal = true;
  double sum = 0, squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t word = a.word();
    EXPECT_EQ(word, b.word());
    all_equal = all_equal && word == c.word();
  }
  EXPECT_FALSE(all_equal);
  for (int i = 0; i < 20000; ++i) {
    const double value = a.normal();
    sum += value, squares += value * value;
  }
  EXPECT_NEAR(sum / 20000, 0, 6 / std::sqrt(20000.0));
  EXPECT_NEAR(squares / 20000, 1, 6 * std::sqrt(2 / 20000.0));
}

TEST(Draw, DiffersFromSampleToSampleAndFromEpochToEpoch) {
  std::set<uint32_t> words;
  for (const int64_t epoch : {0, 1, 2})
    for (const int64_t index : {0, 1, 49999}) words.insert(Draw::of_sample(7, epoch, index).word());
  words.insert(Draw::of_sample(8, 0, 0).word());
  EXPECT_EQ(words.size(), 10u);
  EXPECT_EQ(Draw::of_sample(7, 1, 1).word(), Draw::of_sample(7, 1, 1).word());
}

TEST(Draw, BelowReachesAllButN) {
  Draw draw = random_draw();
  std::array<int, 3> seen{};
  for (int i = 0; i < 3000; ++i) {
    const int64_t value = draw.below(3);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 3);
    ++seen[static_cast<size_t>(value)];
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 6 * std::sqrt(3000 * 2 / 9.0));
  EXPECT_EQ(draw.below(1), 0);
}

TEST(Pipeline, GivesOneSizeWhateverComes) {
  for (const char* text : {"imagenet:32", "resize:32", "none:32", "flip:32", "cifar:32", "shapes:32"})
    for (const Split split : {Split::train, Split::val}) {
      const Pipeline pipeline = make_pipeline(text, split);
      for (const auto& [height, width] : {std::pair{50, 70}, std::pair{9, 200}, std::pair{33, 8}}) {
        Draw draw = random_draw();
        const Image out = pipeline.prepare(random_image(height, width, 3), draw);
        EXPECT_EQ(out.height, 32);
        EXPECT_EQ(out.width, 32);
        EXPECT_EQ(out.label, 3);
      }
    }
  EXPECT_EQ(make_pipeline("imagenet", Split::val).height, 224);
}

TEST(Pipeline, AnImageThatIsStretchedIsPlacedAsOneThatIsNot) {
  EXPECT_FALSE(make_pipeline("none:32", Split::train).place) << "no mirroring that nobody asked for";
  for (const std::string name : {"flip", "cifar", "shapes"}) {
    const Pipeline plain = make_pipeline(name, Split::train), stretched = make_pipeline(name + ":32", Split::train);
    Draw a = random_draw(), b = a;
    for (int i = 0; i < 20; ++i) {
      const Place want = plain.place(a), got = stretched.place(b);
      EXPECT_EQ(std::tuple(got.top, got.left, got.flip), std::tuple(want.top, want.left, want.flip)) << name;
    }
  }
}

TEST(Pipeline, RandomShiftsReachEveryPlaceOftenEnough) {
  for (const auto& [name, padding] : {std::pair{"cifar", 4}, std::pair{"shapes", 2}}) {
    constexpr int kEach = 400;  // a standard deviation of 20
    const int places = (2 * padding + 1) * (2 * padding + 1);
    std::map<std::pair<int, int>, int> counts;
    Draw draw = random_draw();
    for (int i = 0; i < kEach * places; ++i) {
      const Place place = make_pipeline(name, Split::train).place(draw);
      EXPECT_LE(std::max(std::abs(place.top), std::abs(place.left)), padding) << name;
      ++counts[{place.top, place.left}];
    }
    EXPECT_EQ(counts.size(), static_cast<size_t>(places)) << name;
    for (const auto& [place, count] : counts) EXPECT_NEAR(count, kEach, 160) << name << ' ' << place.first;
  }
}

TEST(Pipeline, ValidationDoesNotDependOnTheDraw) {
  for (const std::string& one : pipeline_names()) {
    const Pipeline pipeline = make_pipeline(one == "resize" ? "resize:8" : one, Split::val);
    EXPECT_FALSE(pipeline.place) << one;
    if (!pipeline.prepare) continue;
    const Image image = random_image(20, 30, 3);
    Draw a = random_draw(), b = random_draw();
    EXPECT_EQ(pipeline.prepare(image, a).pixels, pipeline.prepare(image, b).pixels) << one;
  }
}

TEST(Pipeline, RefusesUnknownNamesAndSizes) {
  EXPECT_THAT(error_text([] { make_pipeline("radaugment", Split::train); }), HasSubstr("Did you mean 'randaugment'?"));
  EXPECT_THAT(error_text([] { make_pipeline("imgnet", Split::train); }),
              HasSubstr("unknown name 'imgnet'. Did you mean 'imagenet'?"));
  EXPECT_THAT(error_text([] { make_pipeline("randaugment+flip", Split::train); }),
              HasSubstr("augment: expected the geometry first, such as flip+randaugment, got randaugment"));
  EXPECT_EQ(make_pipeline("randaugment:2,9", Split::train).name, "none+randaugment:2,9");
  for (const char* text : {"resize", "resize:", "resize:0", "resize:-3", "imagenet:2x", "imagenet:99999", "cifar:"})
    EXPECT_THAT(error_text([&] { make_pipeline(text, Split::train); }), HasSubstr("expected NAME:SIZE")) << text;
  EXPECT_EQ(default_pipeline("cifar100:/x"), "cifar");
  EXPECT_EQ(default_pipeline("shapes"), "shapes");
  EXPECT_EQ(default_pipeline("folder:/x"), "imagenet");
  EXPECT_EQ(default_pipeline("idx:/x"), "none");
}

}  // namespace
}  // namespace weft::data::testing
