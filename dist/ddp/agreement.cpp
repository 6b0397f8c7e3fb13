// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/agreement.h"

#include <algorithm>
#include <sstream>

#include "core/autograd.h"
#include "io/crc32c.h"

namespace weft::dist {
namespace {

/// One line per parameter and buffer, in order.
struct Listing : nn::Visitor {
  std::vector<std::string> lines;

  void add(const char* what, const std::string& path, const Tensor& tensor, const char* more) {
    lines.push_back(
        str(what, ' ', path, ' ', tensor.dtype(), tensor.sizes(), " on ", name(tensor.device().kind), more));
  }
  void parameter(const std::string& path, Tensor& tensor, nn::Layout) override {
    add("parameter", path, tensor, tensor.requires_grad() ? "" : ", frozen");
  }
  void buffer_at(const std::string& path, Tensor& tensor) override { add("buffer", path, tensor, ""); }
};

/// Everything that a rank's model holds.
struct Contents : nn::Visitor {
  std::vector<NamedTensor> tensors;
  std::vector<int64_t*> counters;

  void parameter(const std::string& path, Tensor& tensor, nn::Layout) override { tensors.push_back({path, tensor}); }
  void buffer_at(const std::string& path, Tensor& tensor) override { tensors.push_back({path, tensor}); }
  void counter_at(const std::string&, int64_t& value) override { counters.push_back(&value); }
};

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// `rank 1`, `ranks 0, 2 and 3`, at most eight of them by number.
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kNamed = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kNamed; ++i)
    text += str(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return ranks.size() > kNamed ? text + " …" : text;
}

/// The first line that is not the same everywhere, as an error.
[[noreturn]] void report_difference(const std::vector<std::string>& texts, const std::string& who) {
  std::vector<std::vector<std::string>> all;
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, all.emplace_back(split_lines(text)).size());
  for (size_t i = 0; i < longest; ++i) {
    std::vector<std::pair<std::string, std::vector<int>>> seen;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const std::string line = i < all[rank].size() ? all[rank][i] : "nothing more";
      auto found = std::find_if(seen.begin(), seen.end(), [&](const auto& entry) { return entry.first == line; });
      if (found == seen.end()) found = seen.insert(seen.end(), {line, {}});
      found->second.push_back(static_cast<int>(rank));
    }
    if (seen.size() == 1) continue;
    std::string text;
    for (const auto& [line, ranks] : seen)
      text += (text.empty() ? "" : ", ") + ranks_text(ranks) + (ranks.size() == 1 ? " has '" : " have '") + line + "'";
    fail(who, ": the model is not the same on all ranks: at entry ", i + 1, " ", text,
         ". All ranks must build the same model");
  }
  fail(who, ": the model is not the same on all ranks");
}

}  // namespace

void check_same_model(ProcessGroup& group, nn::Module& model, const std::string& who) {
  if (group.size() == 1) return;
  Listing listing;
  model.fields(listing);
  std::string text;
  for (const std::string& line : listing.lines) text += line + '\n';
  // Whole listings travel only when their short forms differ.
  const std::string digest = str(text.size(), ' ', crc32c(text.data(), text.size()));
  const std::vector<std::string> digests = group.all_gather_text(digest, "model digest");
  if (std::all_of(digests.begin(), digests.end(), [&](const std::string& other) { return other == digest; })) return;
  report_difference(group.all_gather_text(text, "model listing"), who);
}

void broadcast_model(ProcessGroup& group, nn::Module& model, int root) {
  if (group.size() == 1) return;
  const NoGrad no_grad;
  Contents contents;
  model.fields(contents);
  // Neighbours in one storage (slices of flat parameters) could travel together; this happens once.
  std::vector<std::pair<Tensor, Tensor>> copies;  // those that are not dense
  std::vector<WorkPtr> works;
  for (const auto& [name, tensor] : contents.tensors) {
    Tensor dense = tensor.detach();
    if (!dense.is_contiguous()) {
      dense = dense.clone();
      copies.emplace_back(tensor.detach(), dense);
    }
    if (dense.numel() > 0) works.push_back(group.broadcast(dense, root, {.name = name, .scale = {}}));
  }
  Tensor counts;
  if (!contents.counters.empty()) {
    std::vector<int64_t> values;
    for (const int64_t* counter : contents.counters) values.push_back(*counter);
    counts = Tensor::from(values, model.device());
    works.push_back(group.broadcast(counts, root, {.name = "counters", .scale = {}}));
  }
  for (const WorkPtr& work : works) work->wait();
  for (const auto& [tensor, dense] : copies) tensor.copy_(dense);
  for (const auto& [name, tensor] : contents.tensors) tensor.storage()->bump_version();
  if (!counts.defined()) return;
  const std::vector<int64_t> values = counts.to_vector<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) *contents.counters[i] = values[i];
}

}  // namespace weft::dist
