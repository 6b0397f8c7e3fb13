// SPDX-License-Identifier: Apache-2.0
// Stands in for spng.cpp where libspng was not found.
#include "apps/support/picture.h"
#include "kernels/error.h"

namespace weft::support {

bool have_png() { return false; }

std::string encode_png(const Picture&) {
  fail("png: expected a build with libspng, got one without. Install libspng-dev, configure and build again");
}

}  // namespace weft::support
