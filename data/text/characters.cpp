// SPDX-License-Identifier: Apache-2.0
#include "data/text/words.h"

namespace weft::data {

std::vector<std::string_view> characters_of(std::string_view word) {
  std::vector<std::string_view> characters;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = begin + 1;
    while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) ++end;  // the bytes that follow
    characters.push_back(word.substr(begin, end - begin));
    begin = end;
  }
  return characters;
}

}  // namespace weft::data
