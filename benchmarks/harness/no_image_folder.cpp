// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "benchmarks/harness/image_folder.h"

namespace bench {

ImageFolder::ImageFolder(int, int) {
  throw std::runtime_error("built without libjpeg-turbo: apt-get install libjpeg-dev and build again");
}
ImageFolder::~ImageFolder() = default;

}  // namespace bench
