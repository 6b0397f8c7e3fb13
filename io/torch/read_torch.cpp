// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "io/torch/pickle_tree.h"
#include "io/torch/torch_archive.h"
#include "io/torch/torch_object.h"
#include "io/weights/open_parts.h"

namespace weft {
namespace {

/// The tensors of one dict of a torch.save file, and NumPy's arrays among them.
class TorchFile : public WeightsFile {
 public:
  TorchFile(const std::filesystem::path& path, const std::string& key, std::shared_ptr<MemoryBudget> memory)
      : archive_(open_torch_archive(path, std::move(memory))) {
    format_ = archive_->format();
    PickleTree tree = flatten_pickle(archive_->pickle(), key, archive_->memory(), archive_->fail());
    metadata_ = std::move(tree.others);
    for (const NamedPickledTensor& named : tree.tensors) {
      if (find(named.name) >= 0) archive_->fail()("tensor '" + named.name + "' occurs twice");
      const StoredDType& stored = named.array ? announce(named) : archive_->announce(*named.tensor, named.name);
      add({named.name, stored.dtype, named.array ? Shape(named.array->sizes) : named.tensor->sizes,
           std::string(stored.name)});
      order_.push_back({named.tensor, named.array});
    }
  }

  Tensor read(size_t index) const override {
    const auto [tensor, array] = order_.at(index);
    const std::string& name = tensors()[index].name;
    return array != nullptr ? read_array(*array, name) : archive_->read(*tensor, name);
  }
  Tensor read_block(size_t index, const WeightBlock& block) const override {
    const auto [tensor, array] = order_.at(index);
    const bool is_dense = array == nullptr && archive_->is_dense(*tensor);
    if (!is_dense) return WeightsFile::read_block(index, block);  // arrays are in memory already
    return archive_->read_block(*tensor, tensors()[index].name, block);
  }
  void check() const override { archive_->check(); }

 private:
  /// As TorchArchive::announce().
  const StoredDType& announce(const NamedPickledTensor& named) const {
    const StoredDType* const stored = find_stored_dtype(stored_name_of(named.array->type));
    const Shape sizes(named.array->sizes);
    if (!is_countable(sizes))
      archive_->fail()(str("array '", named.name, "': expected a size that fits memory, got shape ", sizes));
    archive_->memory().take(static_cast<uint64_t>(sizes.numel()) * size_of(stored->dtype), "arrays", archive_->fail());
    return *stored;
  }

  Tensor read_array(const NumpyArray& array, const std::string& name) const {
    const StoredDType& stored = *find_stored_dtype(stored_name_of(array.type));
    std::vector<int64_t> sizes = array.sizes;
    Shape order;
    for (size_t d = 0; d < sizes.size(); ++d) order.push_back(static_cast<int64_t>(sizes.size() - 1 - d));
    if (array.is_fortran) std::reverse(sizes.begin(), sizes.end());
    const auto copy = [&](void* to, uint64_t count) {
      std::memcpy(to, array.bytes->data(), count);
      auto* const bytes = static_cast<char*>(to);
      for (uint64_t at = 0; array.is_big_endian && at < count; at += stored.bytes)
        std::reverse(bytes + at, bytes + at + stored.bytes);
    };
    const Tensor values = read_stored(stored, Shape(sizes), copy, [&](std::string_view text) {
      archive_->fail()(str("array '", name, "': ", text));
    });
    return array.is_fortran ? values.permute(order).contiguous() : values;
  }

  std::unique_ptr<TorchArchive> archive_;
  std::vector<std::pair<const PickledTensor*, const NumpyArray*>> order_;  // one of both
};

}  // namespace

std::unique_ptr<WeightsFile> open_torch(const std::filesystem::path& path, const std::string& key) {
  return open_torch(path, key, std::make_shared<MemoryBudget>());
}

std::unique_ptr<WeightsFile> open_torch(const std::filesystem::path& path, const std::string& key,
                                        std::shared_ptr<MemoryBudget> memory) {
  return std::make_unique<TorchFile>(path, key, std::move(memory));
}

namespace {

/// Copies the values below the root, twice: first tensors are only announced, then they are read. The values form a
/// graph: a value with two references is copied twice. The number of copies is limited to the pickle's opcodes, far
/// above what real files need.
class Copy {
 public:
  Copy(TorchArchive& archive, const LeavesOut& leaves_out) : archive_(archive), leaves_out_(leaves_out) {}

  TorchObject run() {
    for (const bool read : {false, true}) {
      is_reading_ = read;
      visits_left_ = archive_.pickle().opcodes;
      text_left_ = kMostPickleText;
      TorchObject object = copy(*archive_.pickle().root, "");
      if (read) return object;
    }
    return {};
  }

 private:
  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    archive_.fail()(str(parts...));
    std::abort();  // not reached: fail() throws
  }

  TorchObject copy(const PickleValue& value, const std::string& name) {
    if (std::find(path_.begin(), path_.end(), &value) != path_.end())
      bad("pickle: ", value.begun(), ": expected values that end, got one that contains itself, at '", name, "'");
    if (path_.size() > kDeepestPickle) bad("expected values nested at most ", kDeepestPickle, " deep, got more");
    const auto* text = value.as<std::string>();
    const uint64_t length = name.size() + (text == nullptr ? 0 : text->size());
    if (visits_left_ == 0 || length > text_left_)
      bad("expected about as many values as the file describes, got far more by repetition");
    --visits_left_;
    text_left_ -= length;
    path_.push_back(&value);
    TorchObject object = copy_of(value, name);
    path_.pop_back();
    return object;
  }

  TorchObject copy_of(const PickleValue& value, const std::string& name) {
    if (value.as<PickleNone>() != nullptr) return {TorchObject::None{}};
    if (const auto* flag = value.as<bool>()) return {*flag};
    if (const auto* number = value.as<int64_t>()) return {*number};
    if (const auto* number = value.as<double>()) return {*number};
    if (const auto* text = value.as<std::string>()) return {*text};
    if (const auto* torch_name = value.as<TorchName>()) return {torch_name->text()};
    if (const auto* type = value.as<TorchStorageType>()) return {type->text()};
    if (const auto* list = value.as<PickleList>()) return list_of(*list, name);
    if (const auto* dict = value.as<PickleDict>()) return dict_of(*dict, name);
    if (const auto* tensor = value.as<PickledTensor>()) {
      if (leaves_out_ && leaves_out_(name)) return {TorchObject::None{}};
      if (is_reading_) return {archive_.read(*tensor, name)};
      archive_.announce(*tensor, name);
      return {};
    }
    bad("expected values and tensors, got ", value.kind(), " at '", name, "'");
  }

  TorchObject list_of(const PickleList& list, const std::string& name) {
    TorchObject::List items;
    for (size_t i = 0; i < list.items.size(); ++i) items.push_back(copy(*list.items[i], below(name, str(i))));
    if (list.is_tuple) return {TorchObject::Tuple{std::move(items)}};
    return {std::move(items)};
  }

  TorchObject dict_of(const PickleDict& dict, const std::string& name) {
    TorchObject::Dict items;
    for (const auto& [key, item] : dict.items) {
      if (const auto* text = key->as<std::string>())
        items.emplace_back(*text, copy(*item, below(name, *text)));
      else if (const auto* number = key->as<int64_t>())
        items.emplace_back(*number, copy(*item, below(name, str(*number))));
      else
        bad("expected keys that are strings or whole numbers, got ", key->kind(), " in '", name, "'");
    }
    return {std::move(items)};
  }

  static std::string below(const std::string& name, const std::string& key) {
    return name.empty() ? key : name + "." + key;
  }

  TorchArchive& archive_;
  const LeavesOut& leaves_out_;
  bool is_reading_ = false;
  uint64_t visits_left_ = 0, text_left_ = 0;
  std::vector<const PickleValue*> path_;  // from the root to the copied value
};

}  // namespace

TorchObject read_torch(const std::filesystem::path& path, const LeavesOut& leaves_out) {
  const std::unique_ptr<TorchArchive> archive = open_torch_archive(path);
  return Copy(*archive, leaves_out).run();
}

}  // namespace weft
