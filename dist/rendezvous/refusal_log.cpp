// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/refusal_log.h"

#include <cstdio>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr int kLinesPerWindow = 10;
constexpr std::chrono::seconds kWindow{60};

}  // namespace

RefusalLog::RefusalLog(std::string who, std::function<void(const std::string&)> write)
    : who_(std::move(who)), write_(std::move(write)) {
  if (!write_) write_ = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
}

RefusalLog::~RefusalLog() { write_rest(); }

void RefusalLog::refused(const std::string& peer, const std::string& why, TimePoint now) {
  if (now - window_ > kWindow) {
    write_rest();
    window_ = now;
    lines_ = 0;
  }
  if (++lines_ <= kLinesPerWindow)
    write_(str(who_, ": refused ", peer, ", which ", printable(why)));
  else
    ++more_;
}

void RefusalLog::write_rest() {
  if (more_ > 0) write_(str(who_, ": refused ", more_, " more unauthenticated peers"));
  more_ = 0;
}

}  // namespace weft::dist
