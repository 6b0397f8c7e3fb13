// SPDX-License-Identifier: Apache-2.0
// States of torch.optim and checkpoints around them, whole as files but not as Weft wrote them. Input: the state's
// kind, then steps that change a value each. torch_file reads damaged files.
#include <limits>

#include "apps/finetune/optimizer_files.h"
#include "apps/nersc/checkpoint.h"
#include "core/ops/reduce.h"
#include "io/torch/zip_archive.h"
#include "nn/conv.h"
#include "tests/fuzz/fuzz.h"
#include "train/torch_optimizer.h"

using namespace weft;

namespace {

using Dict = TorchObject::Dict;
using List = TorchObject::List;

void collect(TorchObject& object, std::vector<TorchObject*>& all) {
  all.push_back(&object);
  if (auto* list = std::get_if<List>(&object.is))
    for (TorchObject& item : *list) collect(item, all);
  if (auto* tuple = std::get_if<TorchObject::Tuple>(&object.is))
    for (TorchObject& item : tuple->items) collect(item, all);
  if (auto* dict = std::get_if<Dict>(&object.is))
    for (TorchObject::Item& item : *dict) collect(item.value, all);
}

Tensor tensor(fuzz::Input& input) {
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i64, DType::bf16, DType::boolean};
  const DType dtype = kTypes[input.byte() % 5];
  Shape sizes;
  for (int rank = input.byte() % 5; rank > 0; --rank) sizes.push_back(input.byte() % 6);
  return Tensor::full(sizes, input.byte(), dtype);
}

void change(TorchObject& object, fuzz::Input& input) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNumbers[] = {-1, 0.5, 1e300, -1e300, kInfinity, kInfinity - 1, 1e15, 2};
  constexpr int64_t kIntegers[] = {-1, 0, 1, INT64_MAX, INT64_MIN, 2, 1 << 30, 1'000'000'000};
  auto* const dict = std::get_if<Dict>(&object.is);
  auto* const list = std::get_if<List>(&object.is);
  switch (input.byte() % 10) {
    case 0:
      object.is = TorchObject::None{};
      break;
    case 1:
      object.is = true;
      break;
    case 2:
      object.is = kIntegers[input.byte() % 8];
      break;
    case 3:
      object.is = kNumbers[input.byte() % 8];
      break;
    case 4:
      object.is = input.text(input.byte() % 16);
      break;
    case 5:
      object.is = tensor(input);
      break;
    case 6:
      object.is = List{};
      break;
    case 7:
      object.is = Dict{};
      break;
    case 8:  // one fewer
      if (dict && !dict->empty()) dict->erase(dict->begin() + input.byte() % static_cast<ptrdiff_t>(dict->size()));
      if (list && !list->empty()) list->pop_back();
      break;
    case 9:  // one twice
      if (dict && !dict->empty()) dict->push_back((*dict)[input.byte() % dict->size()]);
      if (list && !list->empty()) list->push_back((*list)[input.byte() % list->size()]);
      break;
  }
}

TorchObject changed(TorchObject object, fuzz::Input& input) {
  for (int step = 0; step < 16 && !input.empty(); ++step) {
    std::vector<TorchObject*> all;
    collect(object, all);
    change(*all[input.word() % all.size()], input);
  }
  return object;
}

struct Net : nn::Module {
  nn::Conv2d conv{2, 3, {2, 1}};

  void fields(nn::Visitor& v) override { v("conv", conv); }
  std::vector<optim::ParameterGroup> groups() {
    const std::vector<NamedTensor> all = parameters();
    return {{.parameters = {all[0]}}, {.parameters = {all[1]}, .lr = 0.25}};
  }
};

template <class Optimizer>
void make_step(Optimizer& optimizer, nn::Module& model) {
  for (const NamedTensor& parameter : model.parameters()) sum(parameter.tensor).backward();
  optimizer.step();
}

void read_optimizer(fuzz::Input& input) {
  const optim::AdamOptions options;
  Net net;
  optim::Adam optimizer(net.groups(), options);
  const train::TorchOptimizer torch{net, optimizer, net.groups(), train::torch_options(options)};
  static const TorchObject start = [&] {
    make_step(optimizer, net);
    return torch.state();
  }();
  const TorchObject object = changed(start, input);
  fuzz::expect_value_or_error([&] {
    torch.load(object, 3, "optimizer.pt");
    make_step(optimizer, net);
  });
}

void read_nersc(const fuzz::Folder& folder, fuzz::Input& input) {
  const auto path = folder.path() / "ckpt.tar";
  static const TorchObject start = [&] {
    Net net;
    nersc::Checkpoint checkpoint;
    checkpoint.iters = 3;
    checkpoint.model_state = net.state_dict();
    checkpoint.settings = "a: 1";
    nersc::write_checkpoint(path, checkpoint, true);
    return read_torch(path);
  }();
  fuzz::expect_value_or_error([&] {
    write_torch(path, changed(start, input));  // refuses a name that stands twice
    nersc::read_checkpoint(path);
  });
}

void read_bert(const fuzz::Folder& folder, fuzz::Input& input) {
  const nn::BertOptions sizes{.vocabulary = 3, .positions = 2, .width = 4, .depth = 1, .heads = 1, .hidden = 4};
  static const auto model = std::make_shared<nn::Bert>(sizes);
  static const auto alone = dist::World::around(dist::make_process_group_alone());
  static const auto strategy = train::make_strategy({.kind = "none"}, model, alone);
  static optim::AdamW optimizer(model->parameters(), {});
  const auto path = folder.path() / "optimizer.pt";
  static const TorchObject start = [&] {
    make_step(optimizer, *model);
    finetune::save_optimizer(folder.path(), optimizer.state_dict(), optimizer, sizes);
    return read_torch(path);
  }();
  fuzz::expect_value_or_error([&] {
    write_torch(path, changed(start, input));
    optim::AdamW other(model->parameters(), {});
    finetune::load_optimizer(folder.path(), *strategy, other, sizes);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const int kind = have_zip() ? input.byte() % 3 : 0;
  if (kind == 0) read_optimizer(input);
  if (kind == 1) read_nersc(folder, input);
  if (kind == 2) read_bert(folder, input);
  return 0;
}
