// SPDX-License-Identifier: Apache-2.0
// The names that a pickle of weights may use: those that torch.load(weights_only=True) allows.
#include "io/torch/torch_pickle.h"

#include "io/pickle/unpickler.h"
#include "io/pickle/usual_names.h"
#include "io/stored_dtype.h"
#include "kernels/error.h"

namespace weft {
namespace {

constexpr size_t kLongestKey = 256;
constexpr uint64_t kMostBytes = uint64_t{1} << 56;  // limit of a storage: arithmetic on offsets cannot overflow

const TorchStorageType kStorages[] = {
    {"FloatStorage", "F32", 4},     {"DoubleStorage", "F64", 8},    {"HalfStorage", "F16", 2},
    {"BFloat16Storage", "BF16", 2}, {"LongStorage", "I64", 8},      {"IntStorage", "I32", 4},
    {"ShortStorage", "I16", 2},     {"CharStorage", "I8", 1},       {"ByteStorage", "U8", 1},
    {"BoolStorage", "BOOL", 1},     {"ComplexFloatStorage", "", 8}, {"ComplexDoubleStorage", "", 16},
    {"QInt8Storage", "", 1},        {"QUInt8Storage", "", 1},       {"QInt32Storage", "", 4},
    {"QUInt4x2Storage", "", 1},     {"QUInt2x4Storage", "", 1},
};
const TorchStorageType kUntyped{"UntypedStorage", "", 1};

const TorchName kNames[] = {
    {"float32", "F32", 4},
    {"float64", "F64", 8},
    {"float16", "F16", 2},
    {"bfloat16", "BF16", 2},
    {"int64", "I64", 8},
    {"int32", "I32", 4},
    {"int16", "I16", 2},
    {"int8", "I8", 1},
    {"uint8", "U8", 1},
    {"uint16", "U16", 2},
    {"uint32", "U32", 4},
    {"uint64", "", 8},
    {"bool", "BOOL", 1},
    {"float8_e4m3fn", "F8_E4M3", 1},
    {"float8_e5m2", "F8_E5M2", 1},
    {"float8_e4m3fnuz", "", 1},
    {"float8_e5m2fnuz", "", 1},
    {"float8_e8m0fnu", "", 1},
    {"float4_e2m1fn_x2", "", 1},
    {"complex32", "", 4},
    {"complex64", "", 8},
    {"complex128", "", 16},
    {"qint8", "", 1},
    {"quint8", "", 1},
    {"qint32", "", 4},
    {"quint4x2", "", 1},
    {"quint2x4", "", 1},
    {"bits8", "", 1},
    {"bits16", "", 2},
    {"bits1x8", "", 1},
    {"bits2x4", "", 1},
    {"bits4x2", "", 1},
    {"uint1", "", 1},
    {"uint2", "", 1},
    {"uint3", "", 1},
    {"uint4", "", 1},
    {"uint5", "", 1},
    {"uint6", "", 1},
    {"uint7", "", 1},
    {"int1", "", 1},
    {"int2", "", 1},
    {"int3", "", 1},
    {"int4", "", 1},
    {"int5", "", 1},
    {"int6", "", 1},
    {"int7", "", 1},
    TorchName("per_tensor_affine"),
    TorchName("per_tensor_symmetric"),
    TorchName("per_channel_affine"),
    TorchName("per_channel_symmetric"),
    TorchName("per_channel_affine_float_qparams"),
    TorchName("Tensor"),
};
const TorchName kParameter("nn.parameter.Parameter");

/// A storage, or (in files of PyTorch 0.3 and older) a range of one.
struct StorageView final : PickleObject {
  const char* kind() const override { return "a storage"; }

  size_t storage = 0;  // index into TorchPickle::storages
  const TorchElement* element = nullptr;
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
  if (empty && !is_countable(tensor.sizes)) outside();
  if (empty ? tensor.offset > numel : last >= numel) outside();
}

/// PyTorch's flags next to the storage: `neg`, for x.conj().imag. `conj` is for complex numbers alone.
void apply_metadata(const PickleValue& value, PickledTensor& tensor, const ByteStream::Fail& fail) {
  if (value.as<PickleNone>() != nullptr) return;
  const auto* dict = value.as<PickleDict>();
  if (dict == nullptr) fail(str("expected a dict of a tensor's metadata, got ", value.kind()));
  for (const auto& [key, item] : dict->items) {
    const auto* name = key->as<std::string>();
    const auto* flag = item->as<bool>();
    if (name == nullptr || flag == nullptr) fail("expected names and bools as a tensor's metadata");
    if (!*flag) continue;
    if (*name != "neg") fail(str("expected a tensor's metadata 'neg' alone, got '", *name, "'"));
    tensor.negative = true;
  }
}

/// (storage, offset, sizes, strides, requires_grad, hooks), then with `has_dtype` the dtype of untyped storages, then
/// the metadata. Only the last of these and those before requires_grad count.
void rebuild(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail, bool has_dtype) {
  const auto& items = arguments.items;
  const size_t least = has_dtype ? 7 : 4, metadata = has_dtype ? 7 : 6;
  if (items.size() < least)
    fail(str("expected a storage, an offset, sizes and strides, got ", items.size(), " values"));
  const auto* view = items[0]->as<StorageView>();
  if (view == nullptr) fail(str("expected a storage, got ", items[0]->kind()));
  auto tensor = std::make_unique<PickledTensor>();
  tensor->element = view->element;
  uint64_t numel = view->numel;
  if (has_dtype) {
    const auto* name = items[6]->as<TorchName>();
    if (name == nullptr || name->element.bytes == 0) fail(str("expected a dtype, got ", items[6]->kind()));
    const uint64_t bytes = view->numel * view->element->bytes;  // at most the file's, or the archive refuses it
    if (view->offset != 0 || bytes % name->element.bytes != 0)
      fail(str("expected a storage of whole elements of ", name->text(), ", got ", bytes, " bytes"));
    tensor->element = &name->element;
    numel = bytes / name->element.bytes;
  }
  const uint64_t offset = count_of(*items[1], "an offset", fail);
  tensor->storage = view->storage;
  tensor->offset = offset;
  tensor->sizes = shape_of(*items[2], "sizes", fail);
  tensor->strides = shape_of(*items[3], "strides", fail);
  if (tensor->sizes.rank() != tensor->strides.rank())
    fail(str("expected as many strides as sizes, got ", tensor->strides, " for ", tensor->sizes));
  check_inside(*tensor, numel, fail);
  tensor->offset += view->offset;
  if (items.size() > metadata) apply_metadata(*items[metadata], *tensor, fail);
  result.is = std::move(tensor);
}

void rebuild_tensor(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  rebuild(arguments, result, fail, /*has_dtype=*/false);
}

void rebuild_tensor_v3(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  rebuild(arguments, result, fail, /*has_dtype=*/true);
}

/// A subclass or a tensor with attributes: (function, type, arguments, state). The attributes are left out.
void rebuild_from_type(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  const auto& items = arguments.items;
  const auto* function = items.size() != 4 ? nullptr : items[0]->as<PickleFunction>();
  const auto* inner = items.size() != 4 ? nullptr : items[2]->as<PickleList>();
  if (function == nullptr || inner == nullptr || function->call == rebuild_from_type)
    fail("_rebuild_from_type_v2: expected a function, a type, arguments and a state");
  function->call(*inner, result, fail);
}

void rebuild_parameter(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  const auto* tensor = arguments.items.empty() ? nullptr : arguments.items[0]->as<PickledTensor>();
  if (tensor == nullptr) fail("_rebuild_parameter: expected a tensor");
  result.is = std::make_unique<PickledTensor>(*tensor);
}

void make_size(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  PickleList sizes = only_argument<PickleList>(arguments, "torch.Size", "a tuple", fail);
  sizes.is_tuple = true;
  result.is = std::move(sizes);
}

/// `cuda:1`.
void make_device(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  const auto& items = arguments.items;
  const auto* kind = items.empty() ? nullptr : items[0]->as<std::string>();
  const auto* index = items.size() != 2 ? nullptr : items[1]->as<int64_t>();
  if (kind == nullptr || items.size() > 2 || (items.size() == 2 && index == nullptr))
    fail("torch.device: expected a text and a whole number");
  result.is = index == nullptr ? *kind : str(*kind, ':', *index);
}

void get_layout(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  result.is = only_argument<std::string>(arguments, "_get_layout", "a text", fail);
}

#define WEFT_REFUSE(text)                                                            \
  PickleFunction([](const PickleList&, PickleValue&, const ByteStream::Fail& fail) { \
    fail("expected a dense tensor, got " text);                                      \
  })

const struct {
  const char *module, *name;
  PickleFunction function;
} kFunctions[] = {
    {"torch._utils", "_rebuild_tensor", PickleFunction(rebuild_tensor)},
    {"torch._utils", "_rebuild_tensor_v2", PickleFunction(rebuild_tensor)},
    {"torch._utils", "_rebuild_tensor_v3", PickleFunction(rebuild_tensor_v3)},
    {"torch._utils", "_rebuild_parameter", PickleFunction(rebuild_parameter)},
    {"torch._utils", "_rebuild_parameter_with_state", PickleFunction(rebuild_parameter)},
    {"torch._tensor", "_rebuild_from_type_v2", PickleFunction(rebuild_from_type)},
    {"torch._utils", "_rebuild_qtensor", WEFT_REFUSE("a quantised one. In PyTorch: save x.dequantize()")},
    {"torch._utils", "_rebuild_sparse_tensor", WEFT_REFUSE("a sparse one. In PyTorch: save x.to_dense()")},
    {"torch._utils", "_rebuild_nested_tensor", WEFT_REFUSE("a nested one. In PyTorch: save x.to_padded_tensor(0)")},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", WEFT_REFUSE("one on the device meta, which has no data")},
    {"torch._utils", "_rebuild_device_tensor_from_numpy",
     WEFT_REFUSE("one of a device that saves NumPy arrays. In PyTorch: save x.cpu()")},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor",
     WEFT_REFUSE("one of a device of its own. In PyTorch: save x.cpu()")},
    {"torch._utils", "_rebuild_wrapper_subclass", WEFT_REFUSE("a wrapper of others. In PyTorch: save what it holds")},
    {"torch", "Size", PickleFunction(make_size)},
    {"torch", "device", PickleFunction(make_device)},
    {"torch.serialization", "_get_layout", PickleFunction(get_layout)},
};
#undef WEFT_REFUSE

const PickleObject* find_global(const std::string& module, const std::string& name) {
  for (const auto& row : kFunctions)
    if (module == row.module && name == row.name) return &row.function;
  if (module == "torch.storage" && name == kUntyped.name) return &kUntyped;
  if (module == "torch.nn.parameter" && name == "Parameter") return &kParameter;
  if (module != "torch") return find_usual(module, name);
  for (const TorchStorageType& type : kStorages)
    if (name == type.name) return &type;
  for (const TorchName& known : kNames)
    if (name == known.element.name) return &known;
  return nullptr;
}

/// torch.save(model) names the model's classes.
std::string refusal(const std::string& name) {
  const bool is_module = name.starts_with("torch.nn.") || name.starts_with("torchvision.models.") ||
                         name.starts_with("timm.models.") || name.starts_with("__main__.") ||
                         name.find(".modeling_") != std::string::npos || name.starts_with("ultralytics.");
  if (!is_module) return "";
  return str(
      "expected tensors, got a whole model (torch.save(model)), of which the file names '", name,
      "'; nothing of it was run. If you trust the file, load it in PyTorch and torch.save(model.state_dict(), …)");
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
  if (numel > kMostBytes / type->bytes)
    fail(str("storage '", *key, "': expected a size that fits memory, got ", numel));
  StorageView view;
  view.storage = index;
  view.element = type;
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

TorchPickle unpickle_torch(ByteStream& bytes, const ByteStream::Fail& fail, MemoryBudget* memory) {
  TorchPickle pickle;
  const PickleVocabulary weights{
      .holds = "weights",
      .advice = ". If you trust the file, load it in PyTorch and save its state_dict() alone",
      .refusal = refusal,
      .memory = memory,
      .find = find_global,
      .load_persistent = [&](const PickleValue& id, PickleValue& result, const ByteStream::Fail& bad) {
        load_storage(pickle, id, result, bad);
      }};
  static_cast<Pickle&>(pickle) = unpickle(bytes, weights, fail);
  return pickle;
}

}  // namespace weft
