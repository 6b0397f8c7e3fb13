// SPDX-License-Identifier: Apache-2.0
// PyTorch's files. A zip archive holds NAME/data.pkl, a pickle that refers to storages by keys. NAME/data/KEY are their
// bytes (torch/serialization.py, caffe2/serialize). The legacy format begins with pickles: a magic number, the version,
// the machine, the object, the keys of its storages. Each storage's size and bytes follow.
#include "io/torch/torch_archive.h"

#include <algorithm>
#include <array>

#include "core/autograd.h"
#include "core/ops/unary.h"
#include "io/file_kind.h"
#include "io/torch/zip_archive.h"

namespace weft {
namespace {

constexpr uint64_t kLargestPickle = 256 << 20;
constexpr std::string_view kTorchMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kLegacyVersion = 1001;

class ZipTorchArchive : public TorchArchive {
 public:
  ZipTorchArchive(const std::filesystem::path& path, std::shared_ptr<MemoryBudget> memory)
      : TorchArchive(path, "pytorch", std::move(memory)), archive_(path) {
    const std::string folder = find_folder();
    if (archive_.find(folder + "constants.pkl") >= 0)
      file_.bad(
          "expected weights, got a TorchScript program. In PyTorch: torch.save(torch.jit.load(FILE).state_dict(), …)");
    if (const std::string order = text(folder + "byteorder", 16); !order.empty() && order != "little")
      file_.bad("expected byteorder little, got '", order, "'");
    read_pickle(folder);
    for (const PickledStorage& storage : pickle().storages) {
      const int64_t entry = archive_.find(folder + "data/" + storage.key);
      if (entry < 0) file_.bad("storage '", storage.key, "': expected a zip entry data/", storage.key, ", got none");
      const uint64_t size = archive_.entries()[static_cast<size_t>(entry)].size;
      if (size != bytes_of(storage))
        file_.bad("storage '", storage.key, "': expected ", bytes_of(storage), " bytes for ", storage.numel,
                  " elements of ", storage.type->name, ", got ", size);
      entries_.push_back(static_cast<size_t>(entry));
    }
  }

  void check() const override {
    std::vector<char> bytes;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!is_used(i)) continue;
      bytes.resize(archive_.entries()[entries_[i]].size);
      archive_.read(entries_[i], bytes.data());
    }
  }

 private:
  /// `archive/`: the folder of all entries.
  std::string find_folder() const {
    for (const ZipArchive::Entry& entry : archive_.entries()) {
      const size_t slash = entry.name.find('/');
      if (slash != std::string::npos && entry.name.substr(slash) == "/data.pkl") return entry.name.substr(0, slash + 1);
    }
    refuse(file_, "a file that torch.save wrote", "a zip archive without NAME/data.pkl");
  }

  std::string text(const std::string& name, uint64_t longest) const {
    const int64_t entry = archive_.find(name);
    if (entry < 0) return "";
    const uint64_t size = archive_.entries()[static_cast<size_t>(entry)].size;
    if (size > longest || size > file_.size())
      file_.bad("zip entry '", name, "': expected at most ", std::min(longest, file_.size()), " bytes, got ", size);
    std::string result(size, '\0');
    archive_.read(static_cast<size_t>(entry), result.data());
    return result;
  }

  void read_pickle(const std::string& folder) {
    const std::string bytes = text(folder + "data.pkl", kLargestPickle);
    ByteStream stream(bytes, fail_);
    set_pickle(unpickle_torch(stream, fail_, memory_.get()));
  }

  void read_storage(size_t storage, void* to, uint64_t begin, uint64_t bytes) const override {
    archive_.read(entries_[storage], to, begin, bytes);
  }

  ZipArchive archive_;
  std::vector<size_t> entries_;  // entry of each storage
};

class LegacyTorchArchive : public TorchArchive {
 public:
  LegacyTorchArchive(const std::filesystem::path& path, std::shared_ptr<MemoryBudget> memory)
      : TorchArchive(path, "pytorch (legacy)", std::move(memory)) {
    ByteStream stream([this](uint64_t offset, void* to, uint64_t bytes) { file_.read(offset, to, bytes); }, 0,
                      file_.size(), fail_);
    if (!begins_with_magic()) refuse(file_, "a file that torch.save wrote");
    const TorchPickle magic = unpickle_torch(stream, fail_, memory_.get()),
                      version = unpickle_torch(stream, fail_, memory_.get());
    const auto* number = magic.root->as<PickleBigInteger>();
    if (number == nullptr || number->bytes != kTorchMagic)
      file_.bad("expected the magic number of torch.save, got another");
    if (const auto* protocol = version.root->as<int64_t>(); protocol == nullptr || *protocol != kLegacyVersion)
      file_.bad("expected version ", kLegacyVersion, " of the legacy format, got another");
    check_machine(unpickle_torch(stream, fail_, memory_.get()));
    set_pickle(unpickle_torch(stream, fail_, memory_.get()));
    find_storages(unpickle_torch(stream, fail_, memory_.get()));
  }

 private:
  /// The pickle of the magic number has at most a few opcodes before it.
  bool begins_with_magic() const {
    std::string head(std::min<uint64_t>(file_.size(), 64), '\0');
    file_.read(0, head.data(), head.size());
    return head.find(kTorchMagic) != std::string::npos;
  }

  void check_machine(const Pickle& facts) const {
    if (const auto* dict = facts.root->as<PickleDict>())
      for (const auto& [name, value] : dict->items)
        if (const auto* word = name->as<std::string>(); word != nullptr && *word == "little_endian")
          if (const auto* little = value->as<bool>(); little != nullptr && !*little)
            file_.bad("expected little-endian data, got big-endian");
  }

  /// The storages follow the pickles in the order of `keys`: a 64-bit count of elements, then the elements.
  void find_storages(const Pickle& keys) {
    const auto* list = keys.root->as<PickleList>();
    if (list == nullptr) file_.bad("expected the list of storage keys, got ", keys.root->kind());
    offsets_.assign(pickle().storages.size(), 0);
    uint64_t position = keys.end;
    for (const PickleRef item : list->items) {
      const auto* key = item->as<std::string>();
      const auto known = key == nullptr ? pickle().storage_of_key.end() : pickle().storage_of_key.find(*key);
      if (known == pickle().storage_of_key.end())
        file_.bad("expected keys of storages that tensors use, got ",
                  key == nullptr ? "another value" : "'" + *key + "'");
      const PickledStorage& storage = pickle().storages[known->second];
      const uint64_t bytes = bytes_of(storage);
      if (offsets_[known->second] != 0) file_.bad("storage '", storage.key, "' occurs twice");
      if (position + 8 > file_.size() || bytes > file_.size() - position - 8)
        file_.bad("storage '", storage.key, "': expected ", bytes, " bytes at ", position + 8, ", got ",
                  file_.size() - std::min(file_.size(), position + 8), ". Is the file cut short?");
      uint64_t numel = 0;
      file_.read(position, &numel, 8);
      if (numel != storage.numel)
        file_.bad("storage '", storage.key, "': expected ", storage.numel, " elements, got ", numel);
      offsets_[known->second] = position + 8;
      position += 8 + bytes;
    }
    for (size_t i = 0; i < offsets_.size(); ++i)
      if (offsets_[i] == 0) file_.bad("storage '", pickle().storages[i].key, "': expected its data, got none");
  }

  void read_storage(size_t storage, void* to, uint64_t begin, uint64_t bytes) const override {
    file_.read(offsets_[storage] + begin, to, bytes);
  }

  std::vector<uint64_t> offsets_;  // place of each storage's data in the file
};

}  // namespace

TorchArchive::TorchArchive(const std::filesystem::path& path, const char* format, std::shared_ptr<MemoryBudget> memory)
    : file_(path, "pytorch"),
      fail_([this](const std::string& text) { file_.bad(text); }),
      memory_(std::move(memory)),
      format_(format) {
  memory_->opened(file_.size());
}

void TorchArchive::set_pickle(TorchPickle pickle) {
  pickle_ = std::move(pickle);
  uses_.assign(pickle_.storages.size(), 0);
  kept_.resize(pickle_.storages.size());
}

uint64_t TorchArchive::bytes_of(const PickledStorage& storage) const {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(storage.numel, storage.type->bytes, &bytes) || bytes > file_.size())
    file_.bad("storage '", storage.key, "': expected at most the file's ", file_.size(), " bytes, got ", storage.numel,
              " elements of ", storage.type->name);
  return bytes;
}

const StoredDType& TorchArchive::announce(const PickledTensor& tensor, const std::string& name) {
  const StoredDType* stored = find_stored_dtype(tensor.element->stored);
  if (stored == nullptr)
    file_.bad("tensor '", name, "': expected a dtype that Weft has, got torch.", tensor.element->name);
  // Views may repeat elements (stride 0) and overlap: the total memory is limited to about the file's size.
  const uint64_t bytes = static_cast<uint64_t>(tensor.sizes.numel()) * size_of(stored->dtype);
  if (!memory_->take(bytes))
    file_.bad("tensor '", name, "': expected tensors of about the file's size (", file_.size(), " bytes), got ", bytes,
              " bytes of ", stored->dtype, tensor.sizes, " on top of others");
  ++uses_[tensor.storage];
  return *stored;
}

Tensor TorchArchive::read(const PickledTensor& tensor, const std::string& name) {
  const PickledStorage& storage = pickle_.storages[tensor.storage];
  const StoredDType& stored = *find_stored_dtype(tensor.element->stored);
  Tensor memory = kept_[tensor.storage];
  if (!memory.defined() || memory.dtype() != stored.dtype) {
    memory = read_stored(
        stored, Shape{static_cast<int64_t>(storage.numel * storage.type->bytes / stored.bytes)},
        [&](void* to, uint64_t) { read_storage(tensor.storage, to, 0, bytes_of(storage)); },
        [&](std::string_view text) { file_.bad("tensor '", name, "': ", text); });
    if (uses_[tensor.storage] > 1) kept_[tensor.storage] = memory;  // tensors with a common storage continue to share
  }
  kernels::View view;
  view.dtype = stored.dtype;
  view.data = static_cast<char*>(memory.raw_data()) + tensor.offset * size_of(stored.dtype);
  view.rank = tensor.sizes.rank();
  for (int d = 0; d < view.rank; ++d) view.sizes[d] = tensor.sizes[d], view.strides[d] = tensor.strides[d];
  const Tensor values = memory.alias(view);
  if (!tensor.negative) return values;
  const NoGrad no_grad;
  return neg(values);
}

bool TorchArchive::is_dense(const PickledTensor& tensor) {
  int64_t stride = 1;
  for (int d = tensor.sizes.rank() - 1; d >= 0; stride *= tensor.sizes[d--])
    if (tensor.sizes[d] != 1 && tensor.strides[d] != stride) return false;
  return true;
}

Tensor TorchArchive::read_block(const PickledTensor& tensor, const std::string& name, const WeightBlock& block) {
  const StoredDType& stored = *find_stored_dtype(tensor.element->stored);
  Shape sizes = tensor.sizes;
  const int64_t row = sizes.numel() / std::max<int64_t>(sizes[0], 1), all = sizes.rank() > 1 ? sizes[1] : 1;
  const bool is_cut = block.columns >= 0 && block.columns < all;
  const int64_t first = static_cast<int64_t>(tensor.offset) + block.row * row + (is_cut ? row / all * block.column : 0);
  const int64_t runs = is_cut ? block.rows : 1;
  sizes[0] = block.rows;
  if (is_cut) sizes[1] = block.columns;
  const auto read = [&](void* to, uint64_t bytes) {
    const uint64_t each = bytes / static_cast<uint64_t>(std::max<int64_t>(runs, 1));
    for (int64_t r = 0; r < runs; ++r)
      read_storage(tensor.storage, static_cast<char*>(to) + static_cast<uint64_t>(r) * each,
                   static_cast<uint64_t>(first + r * row) * stored.bytes, each);
  };
  const Tensor values =
      read_stored(stored, sizes, read, [&](std::string_view text) { file_.bad("tensor '", name, "': ", text); });
  const NoGrad no_grad;
  return tensor.negative ? neg(values) : values;
}

std::unique_ptr<TorchArchive> open_torch_archive(const std::filesystem::path& path,
                                                 std::shared_ptr<MemoryBudget> memory) {
  const FileReader file(path, "pytorch");
  std::array<char, 4> start{};
  file.read(0, start.data(), std::min<uint64_t>(file.size(), start.size()));
  if (start[0] == 'P' && start[1] == 'K') return std::make_unique<ZipTorchArchive>(path, std::move(memory));
  if (start[0] == '\x80') return std::make_unique<LegacyTorchArchive>(path, std::move(memory));
  refuse(file, "a file that torch.save wrote (a zip archive, or pickles)");
}

}  // namespace weft
