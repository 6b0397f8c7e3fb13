// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Each channel's bytes replaced by their rank, so that its histogram becomes flat, in whole numbers as Pillow's
/// ImageOps.equalize: byte b becomes (step / 2 + bytes below b) / step with step = (bytes - those of the brightest) /
/// 255; a channel with a step of 0 stays.
Picture equalize(Picture picture);

}  // namespace weft::data
