// SPDX-License-Identifier: Apache-2.0
#include "train/loader_task.h"

namespace weft::train {

std::optional<Batch> LoaderTask::next() {
  auto batch = loader_->next();
  return batch ? std::optional(Batch{std::move(batch->tensors), batch->count}) : std::nullopt;
}

std::string LoaderTask::origin(int64_t epoch, int64_t batch, size_t number, const Shape& place) const {
  const std::vector<std::string>& names = loader_->names();
  return str(number < names.size() ? "'" + names[number] + "'" : str("tensor ", number), " of ",
             loader_->origin(epoch, batch, number, place));
}

}  // namespace weft::train
