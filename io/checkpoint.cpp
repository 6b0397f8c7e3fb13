// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/text.h"
#include "io/atomic_file.h"
#include "io/checkpoint_reader.h"
#include "io/safetensors.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

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
  for (size_t i = 0; i < names.size() && i < kListed; ++i) out += (i ? ", " : "") + printable(names[i], 300);
  return out + (names.size() > kListed ? ", …)" : ")") + "; ";
}

void check_name(const std::string& name) {
  WEFT_CHECK(
      !name.empty() && name != "." && name.find('/') == std::string::npos && name.find('\n') == std::string::npos,
      "checkpoint: expected a name without '/', got '", printable(name), "'");
}

/// Lists a part in the index, and its tensors in `tensors` as PART/NAME.
void add_part(const std::string& part, const StateDict& state, CheckpointIndex& index, StateDict& tensors) {
  check_name(part);
  std::set<std::string_view> names;
  CheckpointIndex::Part listed{{}, state.scalars};
  for (const NamedTensor& entry : state.tensors) {
    check_name(entry.name);
    WEFT_CHECK(entry.tensor.defined(), "checkpoint: expected a tensor for '", entry.name, "', got none");
    WEFT_CHECK(names.insert(entry.name).second, "checkpoint: expected each name once in ", part, ", got '", entry.name,
               "' twice");
    listed.tensors.push_back({entry.name, entry.tensor.dtype(), entry.tensor.sizes()});
    index.files[0].pieces.push_back({part, entry.name, 0, entry.tensor.numel()});
    tensors.tensors.push_back({part + '/' + entry.name, entry.tensor});
  }
  index.parts.emplace_back(part, std::move(listed));
}

}  // namespace

void save_checkpoint(const fs::path& path, const Checkpoint& checkpoint, int keep) {
  CheckpointIndex index;
  index.files.resize(1);
  index.integers = checkpoint.integers;
  index.numbers = checkpoint.numbers;
  index.texts = checkpoint.texts;
  StateDict tensors;
  for (const auto& [part, state] : checkpoint.parts) add_part(part, state, index, tensors);
  write_sealed_safetensors(path, "checkpoint", tensors, {{CheckpointIndex::kMetadataKey, index_text(index)}}, keep);
}

Checkpoint load_checkpoint(const fs::path& path) {
  const DiskWork work("reading " + path.string());
  const CheckpointReader reader(path);
  const CheckpointIndex& index = reader.index();
  std::vector<std::string> parts;
  for (const auto& [part, listed] : index.parts) parts.push_back(part);
  return {reader.states(parts), index.integers, index.numbers, index.texts};
}

fs::path find_checkpoint(const fs::path& path) {
  std::error_code ignored;
  for (const fs::path& one : {path, fs::path(path).replace_extension()})
    if (fs::exists(fs::symlink_status(one, ignored))) return one;
  return {};
}

fs::path find_whole_checkpoint(const fs::path& path, std::string& note) {
  std::error_code ignored;
  std::string first;  // error of the newest
  for (int age = 0;; ++age) {
    const fs::path one = find_checkpoint(kept_file(path, age));
    // The newest alone may be missing: a crash on a file system without hard links.
    if (age > 0 && !fs::exists(fs::symlink_status(one, ignored))) break;
    if (one.empty()) continue;
    const DiskWork work("reading " + one.string());
    try {
      CheckpointReader(one).check();
      if (age > 0) note = str(first.empty() ? path.string() + " is missing" : first, "; going on from ", one.string());
      return one;
    } catch (const Error& error) {
      if (first.empty()) first = error.what();
    }
  }
  if (!first.empty()) fail(first);
  return {};
}

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

}  // namespace weft
