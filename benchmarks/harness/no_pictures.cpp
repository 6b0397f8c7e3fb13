// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "benchmarks/harness/pictures.h"

namespace bench {

PictureFolder::PictureFolder(int, int) {
  throw std::runtime_error("built without libjpeg-turbo: apt-get install libjpeg62-turbo-dev and build again");
}
PictureFolder::~PictureFolder() = default;

}  // namespace bench
