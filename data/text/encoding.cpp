// SPDX-License-Identifier: Apache-2.0
#include "data/text/encoding.h"

#include <algorithm>

#include "kernels/error.h"

namespace weft::data {
namespace {

void cut(std::vector<int64_t>& ids, size_t most, bool front) {
  if (ids.size() <= most) return;
  if (front) ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(most));
  ids.resize(most);
}

}  // namespace

Encoding TextEncoder::encode(std::string_view first, int64_t most) const {
  WEFT_CHECK(most >= 2, "TextEncoder: expected room for at least 2 tokens, got ", most);
  const Frame f = frame();
  std::vector<int64_t> ids = ids_of(first);
  cut(ids, static_cast<size_t>(most - 2), f.cuts_front);
  ids.insert(ids.begin(), f.first);
  ids.push_back(f.separator);
  std::vector<int64_t> types(ids.size());
  return {std::move(ids), std::move(types)};
}

Encoding TextEncoder::encode(std::string_view first, std::string_view second, int64_t most) const {
  const Frame f = frame();
  WEFT_CHECK(most >= 2 + f.between, "TextEncoder: expected room for at least ", 2 + f.between, " tokens, got ", most);
  std::vector<int64_t> a = ids_of(first), b = ids_of(second);
  auto &longer = a.size() > b.size() ? a : b, &shorter = a.size() > b.size() ? b : a;
  const auto room = static_cast<size_t>(most - 2 - f.between);
  if (a.size() + b.size() > room) {
    cut(shorter, room / 2, f.cuts_front);
    cut(longer, room - shorter.size(), f.cuts_front);
  }
  Encoding encoding{{f.first}, {}};
  encoding.ids.insert(encoding.ids.end(), a.begin(), a.end());
  encoding.ids.insert(encoding.ids.end(), static_cast<size_t>(f.between), f.separator);
  encoding.token_types.assign(encoding.ids.size(), 0);
  encoding.ids.insert(encoding.ids.end(), b.begin(), b.end());
  encoding.ids.push_back(f.separator);
  encoding.token_types.resize(encoding.ids.size(), f.marks_second ? 1 : 0);
  return encoding;
}

}  // namespace weft::data
