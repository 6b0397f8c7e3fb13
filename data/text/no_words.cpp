// SPDX-License-Identifier: Apache-2.0
#include "data/text/words.h"
#include "kernels/error.h"

namespace weft::data {

std::vector<std::string> split_words(std::string_view, bool) {
  fail("words: built without utf8proc. On Debian: apt-get install libutf8proc-dev, then configure again");
}

}  // namespace weft::data
