// SPDX-License-Identifier: Apache-2.0
#include "data/text/metaspace.h"

#include <charconv>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::data {

Metaspace metaspace_named(const std::string& scheme) {
  WEFT_CHECK(scheme == "always" || scheme == "first" || scheme == "never",
             "Metaspace: expected the prepend_scheme always, first or never, got '", printable(scheme), "'");
  return scheme == "always" ? Metaspace::always : scheme == "first" ? Metaspace::first : Metaspace::never;
}

std::string replaced_in(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    result += text.substr(at, found - at);
    if (found == text.npos) return result;
    result += to;
    at = found + from.size();
  }
}

std::string byte_token(uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + '>';
}

void append_token(std::string& text, std::string_view token, std::string_view space, bool bytes) {
  uint8_t byte = 0;
  if (bytes && token.size() == 6 && token.starts_with("<0x") && token.ends_with('>')) {
    const char* const end = token.data() + 5;
    if (std::from_chars(token.data() + 3, end, byte, 16).ptr == end) {
      text += static_cast<char>(byte);
      return;
    }
  }
  text += space.empty() ? std::string(token) : replaced_in(token, space, " ");
}

}  // namespace weft::data
