// SPDX-License-Identifier: Apache-2.0
#include "io/home.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace weft {

std::string expand_home(const std::string& text) {
  const auto in_kind = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  const auto end = std::find_if_not(text.begin(), text.end(), in_kind);
  const auto tilde = end != text.begin() && end != text.end() && *end == ':' ? end + 1 : text.begin();
  if (tilde == text.end() || *tilde != '~' || (tilde + 1 != text.end() && tilde[1] != '/')) return text;
  const char* home = std::getenv("HOME");
  if (const passwd* user = home == nullptr ? ::getpwuid(::getuid()) : nullptr) home = user->pw_dir;
  if (home == nullptr) return text;
  return std::string(text.begin(), tilde) + home + std::string(tilde + 1, text.end());
}

}  // namespace weft
