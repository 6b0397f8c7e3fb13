// SPDX-License-Identifier: Apache-2.0
// What torch.save writes: a zip archive of a pickle, in which a tensor is _rebuild_tensor_v2(storage, 0, sizes,
// strides, False, OrderedDict()), and of the storages' bytes.
#include <map>
#include <set>
#include <tuple>

#include "core/text.h"
#include "io/pickle/pickler.h"
#include "io/torch/torch_object.h"
#include "io/torch/zip_archive.h"
#include "io/weights/weights_file.h"

namespace weft {
namespace {

const char* storage_class(DType dtype) {
  constexpr const char* names[] = {"FloatStorage", "DoubleStorage", "BFloat16Storage", "HalfStorage",
                                   "LongStorage",  "IntStorage",    "ByteStorage",     "BoolStorage"};
  return names[static_cast<int>(dtype)];
}

Shape dense_strides(const Shape& sizes) {
  Shape strides = sizes;
  int64_t stride = 1;
  for (int d = sizes.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

/// Pickles values and collects their storages.
class Writer {
 public:
  void value(const TorchObject& object) {
    std::visit([this](const auto& is) { write(is); }, object.is);
  }

  std::string finish() { return pickle_.finish(); }
  /// Storages by key, each dense when written.
  const std::vector<Tensor>& storages() const { return storages_; }

 private:
  void write(TorchObject::None) { pickle_.none(); }
  void write(bool value) { pickle_.boolean(value); }
  void write(int64_t value) { pickle_.integer(value); }
  void write(double value) { pickle_.number(value); }
  void write(const std::string& value) { pickle_.text(value); }

  void write(const TorchObject::List& list) {
    pickle_.op(PickleOp::empty_list);
    pickle_.op(PickleOp::mark);
    for (const TorchObject& item : list) value(item);
    pickle_.op(PickleOp::appends);
  }

  void write(const TorchObject::Tuple& tuple) {
    pickle_.op(PickleOp::mark);
    for (const TorchObject& item : tuple.items) value(item);
    pickle_.op(PickleOp::tuple);
  }

  void write(const TorchObject::Dict& dict) {
    std::set<std::variant<std::string, int64_t>> keys;
    pickle_.op(PickleOp::empty_dict);
    pickle_.op(PickleOp::mark);
    for (const auto& [key, item] : dict) {
      const auto* name = std::get_if<std::string>(&key);
      WEFT_CHECK(keys.insert(key).second, "pytorch: expected each name once, got '",
                 name != nullptr ? printable(*name) : str(std::get<int64_t>(key)), "' twice");
      std::visit([this](const auto& is) { write(is); }, key);
      value(item);
    }
    pickle_.op(PickleOp::set_items);
  }

  void write(const Tensor& tensor) {
    WEFT_CHECK(tensor.defined(), "pytorch: expected a tensor, got an undefined one");
    pickle_.global("torch._utils", "_rebuild_tensor_v2");
    pickle_.op(PickleOp::mark);
    pickle_.op(PickleOp::mark);
    pickle_.text("storage");
    pickle_.global("torch", storage_class(tensor.dtype()));
    pickle_.text(key_of(tensor));
    pickle_.text("cpu");
    pickle_.integer(tensor.numel());
    pickle_.op(PickleOp::tuple);
    pickle_.op(PickleOp::bin_persid);
    pickle_.integer(0);
    write(tensor.sizes());
    write(dense_strides(tensor.sizes()));
    pickle_.boolean(false);
    pickle_.global("collections", "OrderedDict");
    pickle_.op(PickleOp::empty_tuple);
    pickle_.op(PickleOp::reduce);
    pickle_.op(PickleOp::tuple);
    pickle_.op(PickleOp::reduce);
  }

  void write(const Shape& shape) {
    pickle_.op(PickleOp::mark);
    for (const int64_t size : shape) pickle_.integer(size);
    pickle_.op(PickleOp::tuple);
  }

  /// Tensors that share memory get one storage.
  std::string key_of(const Tensor& tensor) {
    const Shape sizes = tensor.sizes();
    const kernels::View& view = tensor.view();
    const Memory memory{view.data, view.dtype, std::vector<int64_t>(sizes.begin(), sizes.end()),
                        std::vector<int64_t>(view.strides.begin(), view.strides.begin() + view.rank)};
    size_t key = storages_.size();
    if (tensor.numel() > 0) key = keys_.emplace(memory, key).first->second;
    if (key == storages_.size()) storages_.push_back(tensor);
    return str(key);
  }

  using Memory = std::tuple<const void*, DType, std::vector<int64_t>, std::vector<int64_t>>;
  Pickler pickle_;
  std::map<Memory, size_t> keys_;
  std::vector<Tensor> storages_;
};

/// Dense on the CPU for as long as the pointer lives.
ZipWriter::Load load_of(const Tensor& tensor) {
  return [tensor] {
    auto dense = std::make_shared<Tensor>(tensor.detach().to(Device{}).contiguous());
    return std::shared_ptr<const void>(dense, dense->raw_data());
  };
}

ZipWriter::Load load_of(std::string bytes) {
  auto text = std::make_shared<std::string>(std::move(bytes));
  return [text] { return std::shared_ptr<const void>(text, text->data()); };
}

}  // namespace

void write_torch(const std::filesystem::path& path, const TorchObject& object, int keep) {
  Writer writer;
  writer.value(object);
  const std::string pickle = writer.finish();

  AtomicFile file(path, "pytorch");
  ZipWriter zip(file);
  zip.add("archive/data.pkl", pickle.size(), load_of(pickle));
  for (size_t key = 0; key < writer.storages().size(); ++key) {
    const Tensor& storage = writer.storages()[key];
    zip.add(str("archive/data/", key), storage.nbytes(), load_of(storage));
  }
  zip.add("archive/version", 2, load_of(std::string("3\n")));
  zip.close();
  file.commit(keep);
}

void write_torch(const std::filesystem::path& path, const StateDict& state) {
  WEFT_CHECK(state.scalars.empty(), "pytorch: expected tensors only, got the number '",
             state.scalars.empty() ? "" : printable(state.scalars[0].name), "'. A checkpoint holds numbers too");
  write_torch(path, TorchObject::of(state));
}

}  // namespace weft
