// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/parse/lexer.h"

#include <algorithm>
#include <cstring>

namespace emulator::ptx {

bool Lexer::skip_comment() {
  if (raw(1) == '/') {
    const void* const newline = std::memchr(at_, '\n', static_cast<size_t>(end_ - at_));
    at_ = newline == nullptr ? end_ : static_cast<const char*>(newline);
    return true;
  }
  if (raw(1) != '*') return false;
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  const size_t close = rest.find("*/", 2);
  if (close == std::string_view::npos) fail("a comment does not end");
  line_ += static_cast<uint32_t>(std::count(at_, at_ + close, '\n'));
  at_ += close + 2;
  return true;
}

std::string_view Lexer::braces() {
  // Bodies are most of a module and are only skipped here, so that this loop looks at the few characters that matter.
  const char* const begin = at_;
  const uint32_t first_line = line_;
  int depth = 1;
  while (true) {
    while (at_ < end_ && !(kClass[static_cast<uint8_t>(*at_)] & kBody)) ++at_;
    if (at_ == end_) {
      line_ = last_line_ = first_line;
      fail("a '{' is never closed");
    }
    const char c = *at_;
    if (c == '"') {
      string();
    } else if (c == '/') {
      if (!skip_comment()) ++at_;
    } else {
      ++at_;
      depth += c == '{' ? 1 : -1;
      if (depth == 0) break;
    }
  }
  const std::string_view found(begin, static_cast<size_t>(at_ - begin - 1));
  line_ = first_line + static_cast<uint32_t>(std::count(found.begin(), found.end(), '\n'));
  return found;
}

void Lexer::skip_statement() {
  while (!accept(';')) {
    const char c = peek();
    if (c == '\0') fail("expected ';'");
    if (c == '"')
      string();
    else
      ++at_;
  }
}

std::string Lexer::one_line(std::string_view text) {
  std::string shown(text);
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return shown;
}

void Lexer::fail(const std::string& what) const {
  std::string_view next(at_, static_cast<size_t>(end_ - at_));
  const std::string shown = one_line(next.substr(0, std::min<size_t>({next.find('\n'), next.size(), 40})));
  throw Fault(FaultCode::unsupported, cat("PTX line ", last_line_, ": ", what, shown.empty() ? "" : " before \"", shown,
                                          shown.empty() ? "" : "\""));
}

}  // namespace emulator::ptx
