// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "data/transforms/augment_op.h"

namespace weft::data {

/// One step of a sub-policy: the op, how likely it is, and the bin of its magnitude (of 10).
struct PolicyStep {
  AugmentOp op;
  double probability;
  int bin;
};
using SubPolicy = std::array<PolicyStep, 2>;

/// What the policies were searched on.
enum class PolicyOf : uint8_t { imagenet, cifar10, svhn };
const char* name(PolicyOf policy);

/// The 25 sub-policies of each set (Cubuk et al., "AutoAugment: Learning Augmentation Policies from Data", CVPR 2019,
/// appendix), with the values that torchvision has for them.
const std::array<SubPolicy, 25>& auto_augment_policy(PolicyOf policy);

/// AutoAugment: one of the 25 sub-policies, both of its steps one after the other, each with its probability and sign.
Image auto_augment(Image image, PolicyOf policy, const AffineOptions& options, Draw& draw);

}  // namespace weft::data
