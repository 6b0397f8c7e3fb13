// SPDX-License-Identifier: Apache-2.0
// Stands in for spng.cpp where libspng was not found.
#include "kernels/error.h"
#include "train/record/canvas.h"

namespace weft::train {

bool have_png() { return false; }

std::string encode_png(const Canvas&) {
  fail("png: expected a build with libspng, got one without. Install libspng-dev, configure and build again");
}

}  // namespace weft::train
