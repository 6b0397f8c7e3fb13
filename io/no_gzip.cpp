// SPDX-License-Identifier: Apache-2.0
#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft {

std::vector<uint8_t> gunzip(const std::vector<uint8_t>&, const std::string& path, uint64_t) {
  fail("gzip: cannot unpack ", path,
       ": built without zlib. On Debian: apt-get install zlib1g-dev, then configure again; ",
       "or unpack the file with gunzip.");
}

}  // namespace weft
