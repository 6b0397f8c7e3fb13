// SPDX-License-Identifier: Apache-2.0
// Compares every op of the augmentation policies with torchvision's results on the same images with Pillow.
// tests/golden/augmentations.py explains the tensors' names.
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "data/transforms/auto_augment.h"
#include "data/transforms/color.h"
#include "io/safetensors.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text, char separator) {
  Words words;
  std::stringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

const std::map<std::string, Tensor>& golden_file() {
  static const std::map<std::string, Tensor> tensors = [] {
    std::map<std::string, Tensor> all;
    for (const auto& [name, tensor] :
         read_safetensors(fs::path(WEFT_GOLDEN) / "augmentations.safetensors").state.tensors)
      all[name] = tensor;
    return all;
  }();
  return tensors;
}

Image to_image(const Tensor& t) { return {t.to_vector<uint8_t>(), t.size(0), t.size(1), t.size(2), 0}; }

AugmentOp op_named(const std::string& word) {
  for (int i = 0; i < kAugmentOps; ++i)
    if (word == name(static_cast<AugmentOp>(i))) return static_cast<AugmentOp>(i);
  fail("no op is called ", word);
}

AffineOptions affine_options(const std::string& sampling, const std::string& fill) {
  AffineOptions options{.sampling = sampling == "bilinear" ? Sampling::bilinear : Sampling::nearest};
  if (fill != "black")
    for (const std::string& byte : split(fill, '-')) options.fill.push_back(static_cast<uint8_t>(std::stoi(byte)));
  return options;
}

TEST(AugmentGolden, EveryOpEqualsPillowBitForBit) {
  std::set<std::string> seen;
  for (const auto& [key, expected] : golden_file()) {
    const Words words = split(key, '/');
    if (words[0] != "op") continue;
    const Image source = to_image(golden_file().at("source/" + words[1]));
    const double strength = std::stod(words[3]);
    const Image got = words[2] == "hue"
                          ? hue(source, strength)
                          : apply(op_named(words[2]), strength, source, affine_options(words[4], words[5]));
    EXPECT_EQ(got.pixels, expected.to_vector<uint8_t>()) << key;
    EXPECT_EQ(got.channels, expected.size(2)) << key;
    seen.insert(words[2]);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kAugmentOps) + 1);  // and hue
}

TEST(AugmentGolden, MagnitudesAreTorchvisions) {
  const std::map<std::string, MagnitudeSpace> spaces{
      {"autoaugment", {}}, {"randaugment", kRandAugmentSpace}, {"trivialaugment", kTrivialAugmentSpace}};
  int compared = 0;
  for (const auto& [key, expected] : golden_file()) {
    const Words words = split(key, '/');
    if (words[0] != "space") continue;
    const AugmentOp op = op_named(words[2]);
    const int height = std::stoi(words[3]), width = std::stoi(words[3].substr(words[3].find('x') + 1));
    const std::vector<float> values = expected.to_vector<float>();
    ASSERT_EQ(values.size(), static_cast<size_t>(spaces.at(words[1]).bins)) << key;
    for (size_t bin = 0; bin < values.size(); ++bin) {
      const double got = magnitude(op, static_cast<int>(bin), spaces.at(words[1]), height, width);
      // torch.linspace itself is off by some roundings, which differ from machine to machine.
      EXPECT_NEAR(got, values[bin], 4 * 6e-8 * std::abs(values[bin])) << key << " bin " << bin;
      if (words[2].starts_with("translate")) {
        EXPECT_EQ(static_cast<int>(got), static_cast<int>(values[bin])) << key << " bin " << bin;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 3 * 11 * (10 + 31 + 31));
}

TEST(AugmentGolden, PoliciesAreThePublishedOnes) {
  for (const PolicyOf policy : {PolicyOf::imagenet, PolicyOf::cifar10, PolicyOf::svhn}) {
    const std::vector<float> expected = golden_file().at(str("policy/", name(policy))).to_vector<float>();
    std::vector<float> got;
    for (const SubPolicy& row : auto_augment_policy(policy))
      for (const PolicyStep& step : row) {
        got.push_back(static_cast<float>(step.op));
        got.push_back(static_cast<float>(step.probability));
        got.push_back(static_cast<float>(step.bin));
      }
    EXPECT_EQ(got, expected) << name(policy);
  }
}

}  // namespace
}  // namespace weft::data::testing
