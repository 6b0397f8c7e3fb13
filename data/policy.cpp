// SPDX-License-Identifier: Apache-2.0
#include "data/policy.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text.h"
#include "data/transforms/auto_augment.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

constexpr int kMostOps = 16;

ImagePolicy auto_policy(const std::string& learned_on) {
  std::vector<std::string> names;
  for (const PolicyOf policy : {PolicyOf::imagenet, PolicyOf::cifar10, PolicyOf::svhn}) {
    names.emplace_back(name(policy));
    if (learned_on == names.back() || (learned_on.empty() && policy == PolicyOf::imagenet))
      return [policy](Image image, Draw& draw) { return auto_augment(std::move(image), policy, {}, draw); };
  }
  fail("augment: expected autoaugment:imagenet, :cifar10 or :svhn, got 'autoaugment:", learned_on, "'.",
       suggestion(learned_on, names));
}

/// Reads a number up to `most` from the front of `text`; false where there is none.
bool take_number(std::string& text, int most, int& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || value < 0 || value > most) return false;
  text.erase(0, static_cast<size_t>(end - text.data()));
  return true;
}

ImagePolicy random_policy(const std::string& numbers) {
  RandAugmentOptions options;
  if (!numbers.empty()) {
    std::string rest = numbers;
    bool good = take_number(rest, kMostOps, options.ops) && options.ops > 0 && rest.starts_with(',');
    if (good) rest.erase(0, 1);
    good = good && take_number(rest, kRandAugmentSpace.bins - 1, options.magnitude) && rest.empty();
    WEFT_CHECK(good, "augment: expected randaugment:N,M with N from 1 to ", kMostOps, " and M from 0 to ",
               kRandAugmentSpace.bins - 1, ", got 'randaugment:", numbers, "'");
  }
  return [options](Image image, Draw& draw) { return rand_augment(std::move(image), options, draw); };
}

}  // namespace

std::vector<std::string> policy_names() { return {"autoaugment", "randaugment", "trivialaugment"}; }

bool is_policy(const std::string& text) {
  const std::vector<std::string> names = policy_names();
  return std::find(names.begin(), names.end(), text.substr(0, text.find(':'))) != names.end();
}

ImagePolicy make_policy(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  WEFT_CHECK(is_policy(text), "augment: unknown policy '", kind, "'.", suggestion(kind, policy_names()));
  WEFT_CHECK(colon == std::string::npos || !rest.empty(), "augment: expected something after the colon of '", text,
             "'");
  if (kind == "autoaugment") return auto_policy(rest);
  if (kind == "randaugment") return random_policy(rest);
  WEFT_CHECK(rest.empty(), "augment: expected trivialaugment alone, it has nothing to tune; got '", text, "'");
  return [](Image image, Draw& draw) { return trivial_augment(std::move(image), {}, draw); };
}

}  // namespace weft::data
