// SPDX-License-Identifier: Apache-2.0
// The names that a pickle of weights may use: the safe part of torch._utils, torch's storages, OrderedDict.
#include "io/torch/torch_pickle.h"

#include "io/pickle/unpickler.h"
#include "kernels/error.h"

namespace weft {
namespace {

constexpr size_t kLongestKey = 256;

const TorchStorageType kStorages[] = {
    {"FloatStorage", "F32", 4},     {"DoubleStorage", "F64", 8},    {"HalfStorage", "F16", 2},
    {"BFloat16Storage", "BF16", 2}, {"LongStorage", "I64", 8},      {"IntStorage", "I32", 4},
    {"ShortStorage", "I16", 2},     {"CharStorage", "I8", 1},       {"ByteStorage", "U8", 1},
    {"BoolStorage", "BOOL", 1},     {"ComplexFloatStorage", "", 8}, {"ComplexDoubleStorage", "", 16},
};

/// A storage, or (in files of PyTorch 0.3 and older) a range of one.
struct StorageView final : PickleObject {
  const char* kind() const override { return "a storage"; }

  size_t storage = 0;  // index into TorchPickle::storages
  uint64_t offset = 0, numel = 0;
};

/// A tuple of whole numbers of at least 0: sizes, strides.
Shape shape_of(const PickleValue& value, const char* what, const ByteStream::Fail& fail) {
  const auto* list = value.as<PickleList>();
  if (list == nullptr) fail(str("expected a tuple of ", what, ", got ", value.kind()));
  if (list->items.size() > kMaxRank)
    fail(str("expected a tensor of at most ", kMaxRank, " dimensions, got ", list->items.size()));
  Shape shape;
  for (const PickleRef item : list->items) {
    const auto* number = item->as<int64_t>();
    if (number == nullptr || *number < 0) fail(str("expected ", what, " that are whole numbers of at least 0"));
    shape.push_back(*number);
  }
  return shape;
}

uint64_t count_of(const PickleValue& value, const char* what, const ByteStream::Fail& fail) {
  const auto* number = value.as<int64_t>();
  if (number == nullptr || *number < 0) fail(str("expected ", what, " of at least 0, got ", value.kind()));
  return static_cast<uint64_t>(*number);
}

/// The number of elements from the first to the last that the view touches; an error if they leave the storage.
void check_inside(const PickledTensor& tensor, uint64_t numel, const ByteStream::Fail& fail) {
  const auto outside = [&] {
    fail(str("tensor of sizes ", tensor.sizes, " and strides ", tensor.strides, " from element ", tensor.offset,
             " on: expected it inside its storage of ", numel, " elements"));
  };
  uint64_t last = tensor.offset, elements = 1;
  bool empty = false;
  for (const int64_t size : tensor.sizes) empty = empty || size == 0;
  for (int d = 0; d < tensor.sizes.rank(); ++d) {
    const auto size = static_cast<uint64_t>(tensor.sizes[d]), stride = static_cast<uint64_t>(tensor.strides[d]);
    uint64_t reach = 0;
    if (empty) continue;
    if (__builtin_mul_overflow(size - 1, stride, &reach) || __builtin_add_overflow(last, reach, &last)) outside();
    // No real view has more than 2^48 elements; below that, later arithmetic cannot overflow.
    if (__builtin_mul_overflow(elements, size, &elements) || elements > uint64_t{1} << 48) outside();
  }
  if (empty ? tensor.offset > numel : last >= numel) outside();
}

/// (storage, offset, sizes, strides, …); the rest (requires_grad, hooks) is ignored.
void rebuild_tensor(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  const auto& items = arguments.items;
  if (items.size() < 4) fail(str("expected a storage, an offset, sizes and strides, got ", items.size(), " values"));
  const auto* view = items[0]->as<StorageView>();
  if (view == nullptr) fail(str("expected a storage, got ", items[0]->kind()));
  auto tensor = std::make_unique<PickledTensor>();
  const uint64_t offset = count_of(*items[1], "an offset", fail);
  tensor->storage = view->storage;
  tensor->offset = offset;
  tensor->sizes = shape_of(*items[2], "sizes", fail);
  tensor->strides = shape_of(*items[3], "strides", fail);
  if (tensor->sizes.rank() != tensor->strides.rank())
    fail(str("expected as many strides as sizes, got ", tensor->strides, " for ", tensor->sizes));
  check_inside(*tensor, view->numel, fail);
  tensor->offset += view->offset;
  result.is = std::move(tensor);
}

/// OrderedDict(), or Python 2's OrderedDict([[key, value], …]).
void ordered_dict(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  PickleDict dict;
  if (arguments.items.size() > 1) fail(str("OrderedDict: expected one list, got ", arguments.items.size(), " values"));
  if (arguments.items.size() == 1) {
    const auto* list = arguments.items[0]->as<PickleList>();
    if (list == nullptr) fail(str("OrderedDict: expected a list, got ", arguments.items[0]->kind()));
    for (const PickleRef item : list->items) {
      const auto* pair = item->as<PickleList>();
      if (pair == nullptr || pair->items.size() != 2) fail("OrderedDict: expected pairs of key and value");
      dict.items.emplace_back(pair->items[0], pair->items[1]);
    }
  }
  result.is = std::move(dict);
}

void rebuild_parameter(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  const auto* tensor = arguments.items.empty() ? nullptr : arguments.items[0]->as<PickledTensor>();
  if (tensor == nullptr) fail("_rebuild_parameter: expected a tensor");
  result.is = std::make_unique<PickledTensor>(*tensor);
}

const struct {
  const char *module, *name;
  PickleFunction function;
} kFunctions[] = {
    {"collections", "OrderedDict", PickleFunction(ordered_dict)},
    {"torch._utils", "_rebuild_tensor", PickleFunction(rebuild_tensor)},
    {"torch._utils", "_rebuild_tensor_v2", PickleFunction(rebuild_tensor)},
    {"torch._utils", "_rebuild_parameter", PickleFunction(rebuild_parameter)},
};

const PickleObject* find_global(const std::string& module, const std::string& name) {
  for (const auto& row : kFunctions)
    if (module == row.module && name == row.name) return &row.function;
  if (module != "torch") return nullptr;
  for (const TorchStorageType& type : kStorages)
    if (name == type.name) return &type;
  return nullptr;
}

void load_storage(TorchPickle& pickle, const PickleValue& id, PickleValue& result, const ByteStream::Fail& fail) {
  const auto* list = id.as<PickleList>();
  if (list == nullptr || list->items.size() < 5 || list->items.size() > 6)
    fail("expected a persistent id ('storage', type, key, place, size)");
  const auto& items = list->items;
  const auto* word = items[0]->as<std::string>();
  const auto* type = items[1]->as<TorchStorageType>();
  const auto* key = items[2]->as<std::string>();
  if (word == nullptr || *word != "storage") fail("expected a persistent id of a storage, got another");
  if (type == nullptr) fail(str("expected a storage type, got ", items[1]->kind()));
  if (key == nullptr) fail(str("expected a storage's key, got ", items[2]->kind()));
  if (key->size() > kLongestKey)
    fail(str("expected a storage's key of at most ", kLongestKey, " bytes, got ", key->size()));
  const uint64_t numel = count_of(*items[4], "a storage's size", fail);

  auto& storages = pickle.storages;
  const auto known = pickle.storage_of_key.find(*key);
  size_t index = known == pickle.storage_of_key.end() ? storages.size() : known->second;
  if (index == storages.size()) {
    storages.push_back({*key, type, numel});
    pickle.storage_of_key.emplace(*key, index);
  } else if (storages[index].type != type || storages[index].numel != numel) {
    fail(str("storage '", *key, "': expected ", storages[index].type->name, " of ", storages[index].numel,
             " elements as before, got ", type->name, " of ", numel));
  }
  StorageView view;
  view.storage = index;
  view.numel = numel;
  if (items.size() == 6 && items[5]->as<PickleNone>() == nullptr) {  // (key of the view, offset, size)
    const auto* range = items[5]->as<PickleList>();
    if (range == nullptr || range->items.size() != 3) fail("expected a range (key, offset, size) of a storage");
    view.offset = count_of(*range->items[1], "an offset", fail);
    view.numel = count_of(*range->items[2], "a size", fail);
    if (view.offset > numel || view.numel > numel - view.offset)
      fail(str("storage '", *key, "': expected a range within ", numel, " elements, got ", view.numel, " from ",
               view.offset, " on"));
  }
  result.is = std::make_unique<StorageView>(view);
}

}  // namespace

TorchPickle unpickle_torch(ByteStream& bytes, const ByteStream::Fail& fail) {
  TorchPickle pickle;
  const PickleVocabulary weights{
      .holds = "weights",
      .advice = ". If you trust the file, load it in PyTorch and save its state_dict() alone",
      .find = find_global,
      .load_persistent = [&](const PickleValue& id, PickleValue& result, const ByteStream::Fail& bad) {
        load_storage(pickle, id, result, bad);
      }};
  static_cast<Pickle&>(pickle) = unpickle(bytes, weights, fail);
  return pickle;
}

}  // namespace weft
