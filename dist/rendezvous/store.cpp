// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/store.h"

#include <algorithm>
#include <iterator>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::dist {

std::string Store::get(const std::string& key, Milliseconds timeout) {
  std::optional<std::string> value = find(key, timeout);
  if (!value) fail_unset(key, timeout);
  return *std::move(value);
}

void Store::fail_unset(const std::string& key, Milliseconds timeout) const {
  const std::string why = why_ended();
  fail("store: no rank has set '", printable(key), "' ",
       why.empty() ? str("within ", timeout.count(), " ms") : str("before the end: ", why));
}

std::vector<std::string> Store::get_all(const std::string& prefix, int count, Milliseconds timeout) {
  std::vector<std::string> values = find_all(prefix, count, timeout);
  if (values.size() < static_cast<size_t>(count)) fail_unset(str(prefix, '/', values.size()), timeout);
  return values;
}

std::vector<std::string> Store::find_all(const std::string& prefix, int count, Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<std::string> values;
  while (values.size() < static_cast<size_t>(count)) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());  // not too short
    std::vector<std::string> run = find_run(prefix, static_cast<int>(values.size()), std::max(left, Milliseconds(0)));
    if (run.empty()) return values;
    values.insert(values.end(), std::move_iterator(run.begin()), std::move_iterator(run.end()));
  }
  values.resize(static_cast<size_t>(count));
  return values;
}

void Store::set_all(const std::string& prefix, const std::vector<std::string>& values) {
  for (size_t i = 0; i < values.size(); ++i) set(str(prefix, '/', i), values[i]);
}

std::vector<std::string> Store::find_run(const std::string& prefix, int first, Milliseconds timeout) {
  if (std::optional<std::string> value = find(str(prefix, '/', first), timeout)) return {*std::move(value)};
  return {};
}

}  // namespace weft::dist
