// SPDX-License-Identifier: Apache-2.0
#include "data/shapes.h"

#include <algorithm>
#include <cmath>

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

TEST(Shapes, AImageIsAFunctionOfSeedSplitAndIndex) {
  const Image one = draw_shape(3, Split::train, 17);
  EXPECT_EQ(draw_shape(3, Split::train, 17).pixels, one.pixels);
  EXPECT_NE(draw_shape(4, Split::train, 17).pixels, one.pixels);
  EXPECT_NE(draw_shape(3, Split::val, 17).pixels, one.pixels);
  EXPECT_NE(draw_shape(3, Split::train, 18).pixels, one.pixels);
}

TEST(Shapes, ClassesAreBalancedAndImagesVary) {
  const auto set = shapes(Split::train, {.seed = 5, .train = 4000});
  std::vector<int> counts(10);
  for (int64_t i = 0; i < set->size(); ++i) ++counts[set->storage()->labels[i]];
  for (const int count : counts) EXPECT_NEAR(count, 400, 6 * std::sqrt(400 * 0.9));
  EXPECT_EQ(set->classes()[5], "star");
}

TEST(Shapes, TheWrittenSetIsTheDrawnSet) {
  const TemporaryFolder folder;
  const ShapesOptions options{.seed = 9, .train = 50, .val = 20};
  for (const Split split : {Split::train, Split::val}) {
    const auto drawn = shapes(split, options);
    const auto read = shapes(folder / "made", split, options);
    ASSERT_EQ(read->size(), drawn->size());
    EXPECT_EQ(read->classes(), drawn->classes());
    for (int64_t i = 0; i < read->size(); ++i) {
      EXPECT_EQ(read->get(i).pixels, drawn->get(i).pixels);
      EXPECT_EQ(read->get(i).label, drawn->get(i).label);
    }
  }
  EXPECT_EQ(fs::file_size(folder / "made/data_batch_5.bin"), 10u * 3073u);
}

TEST(Shapes, RefusesWhatCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { write_shapes(folder.path(), {.train = 7}); }), HasSubstr("multiple of 5"));
  write_file(folder / "file", {1});
  EXPECT_THAT(error_text([&] { write_shapes(folder / "file/below"); }), HasSubstr("cannot make the folder"));
  EXPECT_THAT(error_text([] { shapes(Split::train, {.train = 0}); }), HasSubstr("at least one image"));
}

/// Softmax regression on raw pixels by plain gradient descent in small batches; returns its accuracy on `train` and on
/// `val`.
struct Accuracy {
  double train = 0, val = 0;
};
Accuracy linear_accuracy(const Storage& train, const Storage& val, int epochs, double rate) {
  const int64_t inputs = train.image_bytes(), classes = 10, batch = 50;
  std::vector<float> weight(classes * (inputs + 1)), gradient(weight.size()), x(inputs + 1), score(classes);
  const auto scores = [&](const Storage& set, int64_t index) {
    const uint8_t* pixels = set.image(index);
    for (int64_t i = 0; i < inputs; ++i) x[i] = static_cast<float>(pixels[i]) / 128.0f - 1.0f;
    x[inputs] = 1;
    for (int64_t c = 0; c < classes; ++c) {
      float sum = 0;
      for (int64_t i = 0; i <= inputs; ++i) sum += weight[c * (inputs + 1) + i] * x[i];
      score[c] = sum;
    }
  };
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (int64_t first = 0; first + batch <= train.count; first += batch) {
      std::fill(gradient.begin(), gradient.end(), 0.0f);
      for (int64_t n = first; n < first + batch; ++n) {
        scores(train, n);
        const float top = *std::max_element(score.begin(), score.end());
        float sum = 0;
        for (float& s : score) sum += s = std::exp(s - top);
        for (int64_t c = 0; c < classes; ++c) {
          const float error = score[c] / sum - (train.labels[n] == c ? 1.0f : 0.0f);
          for (int64_t i = 0; i <= inputs; ++i) gradient[c * (inputs + 1) + i] += error * x[i];
        }
      }
      for (size_t i = 0; i < weight.size(); ++i) weight[i] -= static_cast<float>(rate / batch) * gradient[i];
    }
  const auto accuracy = [&](const Storage& set) {
    int64_t right = 0;
    for (int64_t n = 0; n < set.count; ++n) {
      scores(set, n);
      right += std::max_element(score.begin(), score.end()) - score.begin() == set.labels[n];
    }
    return static_cast<double>(right) / static_cast<double>(set.count);
  };
  return {accuracy(train), accuracy(val)};
}

TEST(Shapes, ALinearClassifierStaysUnder60Percent) {
  const auto train = shapes(Split::train), val = shapes(Split::val);
  const Accuracy accuracy = linear_accuracy(*train->storage(), *val->storage(), 4, 0.01);
  RecordProperty("train", std::to_string(accuracy.train));
  RecordProperty("val", std::to_string(accuracy.val));
  EXPECT_LT(accuracy.val, 0.6);
  EXPECT_GT(accuracy.train, 0.13) << "the regression must have learned something for this test to mean anything";
}

TEST(Shapes, TheRegressionOfThisTestCanLearn) {
  // A regression on a set that is linear by construction: the label is written into a corner.
  auto easy = [](int64_t count, std::vector<uint8_t>& pixels, std::vector<int64_t>& labels) {
    pixels = random_bytes(count * 300);
    labels.resize(count);
    for (int64_t n = 0; n < count; ++n) {
      labels[n] = n % 10;
      for (int64_t c = 0; c < 10; ++c) pixels[n * 300 + c] = c == labels[n] ? 255 : 0;
    }
    return Storage{pixels.data(), labels.data(), count, 10, 10, 3};
  };
  std::vector<uint8_t> a, b;
  std::vector<int64_t> la, lb;
  const Storage train = easy(2000, a, la), val = easy(500, b, lb);
  EXPECT_GT(linear_accuracy(train, val, 4, 0.01).val, 0.95);
}

}  // namespace
}  // namespace weft::data::testing
