// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/checkpoint.h"

#include "io/atomic_file.h"

namespace weft::nersc {
namespace {

constexpr std::string_view kPrefix = "module.";

}  // namespace

std::filesystem::path best_of(const std::filesystem::path& path) {
  std::filesystem::path best = path;
  return best.replace_filename(path.stem().string() + "_best" + path.extension().string());
}

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint, bool prefixed, int keep) {
  StateDict state = checkpoint.model_state;
  for (NamedTensor& entry : state.tensors)
    if (prefixed) entry.name.insert(0, kPrefix);
  write_torch(path,
              {TorchObject::Dict{{"iters", {checkpoint.iters}},
                                 {"epoch", {checkpoint.epoch}},
                                 {"model_state", TorchObject::of(state)},
                                 {"optimizer_state_dict", checkpoint.optimizer_state_dict},
                                 {"scheduler_state_dict", checkpoint.scheduler_state_dict},
                                 {"best_val_loss", {checkpoint.best_val_loss}},
                                 {"best_epoch", {checkpoint.best_epoch}},
                                 {"settings", {checkpoint.settings}}}},
              keep);
}

Checkpoint read_last_checkpoint(const std::filesystem::path& path, std::string& note) {
  const std::filesystem::path before = kept_file(path, 1);
  try {
    static_cast<void>(read_torch(path));
  } catch (const Error& error) {
    if (!std::filesystem::exists(before)) throw;
    note = str(error.what(), "; going on from ", before.string());
  }
  return read_checkpoint(note.empty() ? path : before);
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  const TorchObject file = read_torch(path);
  const std::string what = "checkpoint " + path.string();
  const auto at = [&](const char* name) -> const TorchObject& { return file.at(name, what); };
  Checkpoint checkpoint{.iters = at("iters").integer(what + ": iters"),
                        .epoch = at("epoch").integer(what + ": epoch"),
                        .model_state = at("model_state").state(what + ": model_state"),
                        .optimizer_state_dict = at("optimizer_state_dict"),
                        .scheduler_state_dict = at("scheduler_state_dict")};
  WEFT_CHECK(checkpoint.epoch >= 0 && checkpoint.epoch < 1'000'000'000, what, ": expected an epoch of at least 0, got ",
             checkpoint.epoch);
  if (const TorchObject* best = file.find("best_val_loss")) checkpoint.best_val_loss = best->number(what);
  if (const TorchObject* best = file.find("best_epoch")) checkpoint.best_epoch = best->integer(what);
  if (const TorchObject* settings = file.find("settings"))
    if (const auto* text = std::get_if<std::string>(&settings->is)) checkpoint.settings = *text;
  for (NamedTensor& entry : checkpoint.model_state.tensors)
    if (entry.name.starts_with(kPrefix)) entry.name.erase(0, kPrefix.size());
  return checkpoint;
}

}  // namespace weft::nersc
