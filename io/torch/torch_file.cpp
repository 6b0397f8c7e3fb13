// SPDX-License-Identifier: Apache-2.0
#include "io/torch/pickle_tree.h"
#include "io/torch/torch_archive.h"
#include "io/weights/open_parts.h"

namespace weft {
namespace {

/// The tensors of one dict of a torch.save file.
class TorchFile : public WeightsFile {
 public:
  TorchFile(const std::filesystem::path& path, const std::string& key, std::shared_ptr<MemoryBudget> memory)
      : archive_(open_torch_archive(path, std::move(memory))) {
    format_ = archive_->format();
    PickleTree tree = flatten_pickle(archive_->pickle(), key, archive_->memory(), archive_->fail());
    metadata_ = std::move(tree.others);
    for (const NamedPickledTensor& named : tree.tensors) {
      if (find(named.name) >= 0) archive_->fail()("tensor '" + named.name + "' occurs twice");
      const StoredDType& stored = archive_->announce(*named.tensor, named.name);
      add({named.name, stored.dtype, named.tensor->sizes, std::string(stored.name)});
      order_.push_back(named.tensor);
    }
  }

  Tensor read(size_t index) const override { return archive_->read(*order_.at(index), tensors()[index].name); }

 private:
  std::unique_ptr<TorchArchive> archive_;
  std::vector<const PickledTensor*> order_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_torch(const std::filesystem::path& path, const std::string& key) {
  return open_torch(path, key, std::make_shared<MemoryBudget>());
}

std::unique_ptr<WeightsFile> open_torch(const std::filesystem::path& path, const std::string& key,
                                        std::shared_ptr<MemoryBudget> memory) {
  return std::make_unique<TorchFile>(path, key, std::move(memory));
}

}  // namespace weft
