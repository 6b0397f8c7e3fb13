// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/fsdp_state.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "core/autograd.h"
#include "dist/fsdp/fsdp_schedule.h"
#include "dist/fsdp/sharded_checkpoint.h"
#include "dist/group/same_lines.h"
#include "io/crc32c.h"

namespace weft::dist {
namespace {

using ByImpl = std::unordered_map<const TensorImpl*, Tensor>;

/// Calls `function` with a member of every unit, in the order of all ranks.
void for_each_shard(FSDP& fsdp, const std::function<void(const FlatShard&)>& function) {
  for (const auto& unit : fsdp.units())
    for (const auto& shard : unit->shards()) function(*shard);
}

/// The parameter in a gathered flat buffer, on the CPU.
Tensor on_host(const Tensor& whole, const ShardedParameter& p) {
  return whole.slice(0, p.offset, p.numel).to(Device{}).clone().reshape(p.parameter.sizes());
}

bool receives(FSDP& fsdp, Receivers receivers) { return receivers == Receivers::all || fsdp.group()->rank() == 0; }

Tensor presented(const Tensor& tensor, nn::Layout layout) {
  return layout == nn::Layout::ohwi ? to_file_order(tensor) : tensor;
}

/// The names of a model's state dict, for a model without parameter memory.
struct State : nn::Visitor {
  explicit State(const ByImpl& found) : values(found) {}
  const ByImpl& values;
  StateDict dict;

  void parameter(const std::string& path, Tensor& tensor, nn::Layout layout) override {
    dict.tensors.push_back({path, presented(values.at(tensor.impl()), layout)});
  }
  void buffer_at(const std::string& path, Tensor& tensor) override {
    dict.tensors.push_back({path, tensor.detach().to(Device{}).clone()});
  }
  void counter_at(const std::string& path, int64_t& value) override {
    dict.tensors.push_back({path, Tensor::from(std::vector<int64_t>{value}, Shape{})});
  }
};

/// A model's entries as targets: how to load a tensor of the presented shape.
struct Targets : nn::Visitor {
  struct Target {
    std::string name;
    Shape sizes;
    bool may_miss = false;
    std::function<void(const Tensor&)> take;
  };
  std::unordered_map<const TensorImpl*, std::function<void(const Tensor&)>> parameters;
  std::vector<Target> found;

  void parameter(const std::string& path, Tensor& tensor, nn::Layout layout) override {
    Shape sizes = tensor.sizes();
    if (layout == nn::Layout::ohwi) sizes = to_file_order(sizes);
    found.push_back({path, sizes, false, [take = parameters.at(tensor.impl()), layout](const Tensor& given) {
                       take(layout == nn::Layout::ohwi ? from_file_order(given) : given);
                     }});
  }
  void buffer_at(const std::string& path, Tensor& tensor) override {
    found.push_back({path, tensor.sizes(), false, [tensor](const Tensor& given) { tensor.copy_(given); }});
  }
  void counter_at(const std::string& path, int64_t& value) override {
    found.push_back(
        {path, Shape{}, true, [&value](const Tensor& given) { value = static_cast<int64_t>(given.item()); }});
  }
};

/// A line for each tensor, the same on all ranks that have read one file.
std::string contents(const StateDict& dict) {
  std::string lines;
  for (const auto& [name, tensor] : dict.tensors) {
    const Tensor dense = tensor.detach().to(Device{}).contiguous();
    lines += str(name, ' ', dense.dtype(), dense.sizes(), ", CRC-32C ", crc32c(dense.raw_data(), dense.nbytes()), '\n');
  }
  return lines;
}

/// This rank's part of a whole parameter (in its stored order).
Tensor part_of(const Tensor& whole, const ShardedParameter& p) {
  return whole.detach().contiguous().reshape({p.numel}).slice(0, p.begin, p.length).reshape(p.shard.sizes());
}

/// `fc.weight` and `exp_avg` of `fc.weight.exp_avg`.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const size_t dot = name.rfind('.');
  WEFT_CHECK(dot != std::string::npos, "fsdp: optimizer state: expected names like fc.weight.exp_avg, got '", name,
             "'");
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::unordered_map<std::string, const ShardedParameter*> trained_by_name(FSDP& fsdp) {
  std::unordered_map<std::string, const ShardedParameter*> result;
  for_each_shard(fsdp, [&](const FlatShard& shard) {
    for (const ShardedParameter& p : shard.parameters())
      if (shard.trained()) result.emplace(p.name, &p);
  });
  return result;
}

}  // namespace

StateDict full_state_dict(FSDP& fsdp, Receivers receivers) {
  const NoGrad no_grad;
  const bool wanted = receives(fsdp, receivers);
  ByImpl values;
  for_each_shard(fsdp, [&](const FlatShard& shard) {
    const Tensor whole = shard.gather_full(shard.master());
    if (!wanted) return;
    for (const ShardedParameter& p : shard.parameters()) values.emplace(p.parameter.impl(), on_host(whole, p));
  });
  if (!wanted) return {};
  State state(values);
  fsdp.module().fields(state);
  return std::move(state.dict);
}

nn::LoadReport load_full_state_dict(FSDP& fsdp, const StateDict& dict, nn::LoadOptions options) {
  const NoGrad no_grad;
  if (fsdp.group()->size() > 1)
    check_same_lines(*fsdp.group(), contents(dict), "load_state_dict: the weights are",
                     "All ranks load the same state dict, at the same time");
  fsdp.free_gathered();
  Targets targets;
  for_each_shard(fsdp, [&](const FlatShard& shard) {
    for (const ShardedParameter& p : shard.parameters())
      targets.parameters.emplace(p.parameter.impl(), [&shard, &p](const Tensor& given) { shard.write(p, given); });
  });
  fsdp.module().fields(targets);

  const std::unordered_map<std::string, Tensor> given = tensors_by_name(dict);
  nn::LoadReport report;
  std::vector<std::string> misshapen;
  for (const Targets::Target& mine : targets.found) {
    const auto theirs = given.find(mine.name);
    if (theirs == given.end()) {
      if (!mine.may_miss) report.missing.push_back(mine.name);
    } else if (theirs->second.sizes() != mine.sizes) {
      misshapen.push_back(str(mine.name, " (expected ", mine.sizes, ", got ", theirs->second.sizes(), ")"));
    }
  }
  for (const std::string& name : names_of(dict))
    if (std::none_of(targets.found.begin(), targets.found.end(), [&](const auto& mine) { return mine.name == name; }))
      report.unexpected.push_back(name);
  using Names = std::vector<std::string>;
  const std::string text =
      mismatch_text(misshapen, options.strict ? report.missing : Names(), options.strict ? report.unexpected : Names());
  WEFT_CHECK(text.empty(), "load_state_dict: the weights do not fit ", fsdp.module().kind(), text);
  for (const Targets::Target& mine : targets.found)
    if (const auto theirs = given.find(mine.name); theirs != given.end()) mine.take(theirs->second);
  return report;
}

StateDict full_optimizer_state(FSDP& fsdp, const StateDict& sharded, Receivers receivers) {
  const NoGrad no_grad;
  const bool wanted = receives(fsdp, receivers);
  const auto trained = trained_by_name(fsdp);
  std::vector<std::string> kinds;  // exp_avg, …
  std::unordered_map<std::string, Tensor> own, full;
  for (const auto& [name, tensor] : sharded.tensors) {
    const auto [parameter, kind] = split_name(name);
    const auto found = trained.find(parameter);
    WEFT_CHECK(found != trained.end() && found->second->shard.sizes() == tensor.sizes(), "fsdp: optimizer state: '",
               name, "' ", tensor, " is not of an optimizer over fsdp.parameters()");
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    own.emplace(name, tensor);
  }
  for (const std::string& kind : kinds)
    for_each_shard(fsdp, [&](const FlatShard& shard) {
      const std::vector<ShardedParameter>& all = shard.parameters();
      const bool any =
          std::any_of(all.begin(), all.end(), [&](const auto& p) { return own.contains(p.name + '.' + kind); });
      if (!shard.trained() || !any) return;
      const Tensor part = Tensor::zeros({shard.shard_numel()}, shard.master().dtype(), shard.master().device());
      for (const ShardedParameter& p : all)
        if (const auto found = own.find(p.name + '.' + kind); found != own.end() && p.length > 0)
          shard.part(part, p).copy_(found->second.reshape({p.length}));
      const Tensor whole = shard.gather_full(part);
      if (!wanted) return;
      for (const ShardedParameter& p : all)
        if (own.contains(p.name + '.' + kind)) full.emplace(p.name + '.' + kind, on_host(whole, p));
    });
  StateDict result;
  if (!wanted) return result;
  for (const NamedTensor& parameter : fsdp.parameters())
    for (const std::string& kind : kinds)
      if (const auto found = full.find(parameter.name + '.' + kind); found != full.end())
        result.tensors.push_back({found->first, found->second});
  result.scalars = sharded.scalars;
  return result;
}

StateDict shard_optimizer_state(FSDP& fsdp, const StateDict& full) {
  const NoGrad no_grad;
  const auto trained = trained_by_name(fsdp);
  StateDict result;
  for (const auto& [name, tensor] : full.tensors) {
    const auto found = trained.find(split_name(name).first);
    WEFT_CHECK(found != trained.end(), "fsdp: optimizer state: '", name, "' belongs to no trained parameter");
    const ShardedParameter& p = *found->second;
    WEFT_CHECK(tensor.sizes() == p.parameter.sizes(), "fsdp: optimizer state: expected '", name, "' ",
               p.parameter.sizes(), ", got ", tensor);
    result.tensors.push_back({name, part_of(tensor, p)});
  }
  result.scalars = full.scalars;
  return result;
}

ShardedState FSDP::sharded_model() { return sharded_state(*this); }
ShardedState FSDP::sharded(const StateDict& part) { return sharded_state(*this, part); }
StateDict FSDP::model_state() { return full_state_dict(*this); }
StateDict FSDP::gathered(const StateDict& part) { return full_optimizer_state(*this, part); }
StateDict FSDP::part_of(const StateDict& whole) { return shard_optimizer_state(*this, whole); }

void FSDP::load_model(const std::string& what, const StateDict& model) {
  try {
    load_full_state_dict(*this, model);
  } catch (const Error& error) {
    fail(what, ": ", error.what());
  }
}

}  // namespace weft::dist
