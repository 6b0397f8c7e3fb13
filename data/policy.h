// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/draw.h"
#include "data/image.h"

namespace weft::data {

/// Changes the pixels of one image, as a pure function of the image and the draw.
using ImagePolicy = std::function<Image(Image, Draw&)>;

/// An augmentation policy by name (transforms/auto_augment.h):
///   autoaugment[:imagenet|cifar10|svhn]   one of 25 learned pairs of ops; imagenet.
///   randaugment[:N,M]                     N random ops at magnitude M of 0 … 30; 2,9.
///   trivialaugment                        one random op at a random magnitude.
/// Pixels that enter from outside are black, positions are rounded to the nearest pixel, as torchvision's
/// defaults. Errors: an unknown name, policy or number.
ImagePolicy make_policy(const std::string& text);

/// Whether the text begins with a policy's name.
bool is_policy(const std::string& text);
std::vector<std::string> policy_names();

}  // namespace weft::data
