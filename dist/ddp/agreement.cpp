// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/agreement.h"

#include <algorithm>

#include "core/autograd.h"
#include "dist/group/divided_module.h"
#include "dist/group/same_lines.h"

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

void check_apart(const ProcessGroup& group, const std::vector<int>& holders, const std::string& what,
                 const std::string& who) {
  for (const int rank : group.others())
    WEFT_CHECK(std::ranges::find(holders, rank) == holders.end(), who, ": rank ", rank, " of group ", group.name(),
               " holds another part of ", what,
               ", which would be mixed with this rank's. Pass the group of ranks with ", "the same part: grid.data()");
}

}  // namespace

void check_replicas(const ProcessGroup& group, nn::Module& model, const std::string& who) {
  for (const auto& [path, module] : model.modules())
    if (const auto* const divided = dynamic_cast<const DividedModule*>(module))
      check_apart(group, divided->holders().others(), "'" + path + "'", who);
}

void check_replicas(const ProcessGroup& group, const FlatParameters& flat, const std::string& who) {
  flat.check_whole(who.c_str());
  check_apart(group, flat.others(), "the model", who);
}

void check_same_model(ProcessGroup& group, nn::Module& model, const std::string& who) {
  if (group.size() == 1) return;
  Listing listing;
  model.fields(listing);
  std::string text;
  for (const std::string& line : listing.lines) text += line + '\n';
  check_same_lines(group, text, who + ": the model is", "All ranks must build the same model");
}

void check_same_trained(ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                        const std::vector<bool>& trained, const std::string& who) {
  std::string text;
  for (size_t i = 0; i < parameters.size(); ++i)
    text += str("parameter ", parameters[i].name, trained[i] ? "" : ", frozen", '\n');
  check_same_lines(group, text, who + ": the model is", "Freeze and thaw the same parameters on all ranks");
}

void broadcast_model(ProcessGroup& group, nn::Module& model, int root) {
  if (group.size() == 1) return;
  const NoGrad no_grad;
  Contents contents;
  model.fields(contents);
  // Neighbours in one storage (slices of flat parameters) could travel together; this happens once.
  std::vector<std::pair<Tensor, Tensor>> copies;  // copies of those that are not dense
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
  works.back()->wait();  // on a GPU only now an error shows
  for (size_t i = 0; i < values.size(); ++i) *contents.counters[i] = values[i];
}

}  // namespace weft::dist
