// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>

namespace weft::weft_watch {
namespace {

constexpr int kUsualWidth = 80, kNarrowest = 24;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The locale's character set, from the deciding variables in their order.
bool locale_is_utf8() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (locale.empty()) locale = environment(name);
  std::transform(locale.begin(), locale.end(), locale.begin(), [](unsigned char c) { return std::toupper(c); });
  return locale.find("UTF-8") != std::string::npos || locale.find("UTF8") != std::string::npos;
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::string columns = environment("COLUMNS");
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return width > 0 ? std::min(width, 1000) : kUsualWidth;
}

}  // namespace

bool is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

Style terminal_style(const Options& options, size_t runs) {
  Style style;
  style.width = std::max(options.width > 0 ? options.width : terminal_width(), kNarrowest);
  style.height = options.height;
  style.color =
      options.color == "always" || (options.color == "auto" && is_terminal() && environment("NO_COLOR").empty());
  style.utf8 = options.symbols == "braille" || (options.symbols == "auto" && locale_is_utf8());
  // Without colour, several runs in dots look the same.
  style.braille = options.symbols == "braille" || (style.utf8 && (style.color || runs <= 1));
  return style;
}

}  // namespace weft::weft_watch
