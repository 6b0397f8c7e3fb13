// SPDX-License-Identifier: Apache-2.0
#include "apps/support/checkpoint.h"

#include <map>

namespace weft::support {
namespace {

constexpr size_t kListed = 5;

template <class Value>
const Value& find(const std::map<std::string, Value>& entries, const std::string& name) {
  const auto found = entries.find(name);
  WEFT_CHECK(found != entries.end(), "checkpoint: expected an entry '", name,
             "', got none. Was it written by another program?");
  return found->second;
}

/// `3 missing (a, b, c); `, at most five by name; nothing for an empty list.
std::string listed(const std::vector<std::string>& names, const char* kind) {
  if (names.empty()) return "";
  std::string out = str(names.size(), " ", kind, " (");
  for (size_t i = 0; i < names.size() && i < kListed; ++i) out += (i ? ", " : "") + names[i];
  return out + (names.size() > kListed ? ", …)" : ")") + "; ";
}

}  // namespace

const StateDict& Checkpoint::part(std::string_view name) const {
  for (const auto& [own, state] : parts)
    if (own == name) return state;
  fail("checkpoint: expected a part '", name, "', got none. Was it written by another program?");
}

int64_t Checkpoint::integer(const std::string& name) const { return find(integers, name); }
double Checkpoint::number(const std::string& name) const { return find(numbers, name); }
const std::string& Checkpoint::text(const std::string& name) const { return find(texts, name); }

void require_match(const std::string& what, const StateDict& expected, const StateDict& got) {
  std::map<std::string, Tensor> present;
  for (const NamedTensor& entry : got.tensors) present.emplace(entry.name, entry.tensor);
  std::vector<std::string> missing, unexpected, different;
  for (const NamedTensor& entry : expected.tensors) {
    const auto found = present.find(entry.name);
    if (found == present.end()) {
      missing.push_back(entry.name);
      continue;
    }
    const Tensor &wanted = entry.tensor, &read = found->second;
    if (wanted.sizes() != read.sizes() || wanted.dtype() != read.dtype())
      different.push_back(
          str(entry.name, ": expected ", wanted.dtype(), wanted.sizes(), ", got ", read.dtype(), read.sizes()));
    present.erase(found);
  }
  for (const NamedTensor& entry : got.tensors)
    if (present.contains(entry.name)) unexpected.push_back(entry.name);
  std::string text = listed(missing, "missing") + listed(unexpected, "unexpected") + listed(different, "different");
  if (text.empty()) return;
  text.resize(text.size() - 2);
  fail(what, ": the tensors do not fit: ", text, ". Does it belong to another model?");
}

}  // namespace weft::support
