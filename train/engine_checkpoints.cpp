// SPDX-License-Identifier: Apache-2.0
// The engine's state in checkpoints.
#include <algorithm>

#include "dist/rendezvous/address.h"
#include "train/engine.h"
#include "train/record/averages.h"
#include "train/record/run_folder.h"
#include "train/resume.h"

namespace weft::train {

void Engine::put(Checkpoint& checkpoint) {
  StateDict model = parts_.strategy.model_state();
  std::erase_if(model.tensors, [&](const NamedTensor& t) { return !t.name.starts_with(options_.saved_prefix); });
  checkpoint.parts.emplace_back("model", std::move(model));
  checkpoint.parts.emplace_back("optimizer", parts_.strategy.optimizer_state(parts_.optimizer));
  save_averages(checkpoint, parts_.strategy, parts_.averages);
  if (parts_.scaler) checkpoint.parts.emplace_back("loss_scaler", parts_.scaler->state_dict());
  put_position(checkpoint);
}

void Engine::put_position(Checkpoint& checkpoint) {
  checkpoint.integers.insert({{"epoch", position_.epoch},
                              {"step_in_epoch", position_.step_in_epoch},
                              {"step", position_.step},
                              {"images", position_.samples},
                              {"best_epoch", position_.best_epoch},
                              {"steps_per_epoch", steps_per_epoch()},
                              {"batch_size", global_batch()}});
  checkpoint.numbers.insert(
      {{"loss_sum", position_.loss_sum}, {"correct", position_.correct}, {"best_accuracy", position_.best_score}});
  save_generator(checkpoint, parts_.world.device());
}

std::vector<std::pair<std::string, dist::ShardedState>> Engine::pieces(std::map<std::string, StateDict>& states) {
  std::vector<std::pair<std::string, dist::ShardedState>> all{{"model", parts_.strategy.sharded_model()}};
  std::erase_if(all[0].second.pieces, [&](const auto& p) { return !p.name.starts_with(options_.saved_prefix); });
  states["optimizer"] = parts_.optimizer.state_dict();
  if (parts_.averages) {
    states["ema"] = parts_.averages->state_dict();
    states["ema_buffers"] = parts_.averages->buffers();
  }
  if (parts_.scaler) states["loss_scaler"] = parts_.scaler->state_dict();
  for (const auto& [part, state] : states) {
    const bool is_whole = part == "ema_buffers" || part == "loss_scaler";
    all.emplace_back(part, is_whole ? dist::sharded_state(state, parts_.world.rank()) : parts_.strategy.sharded(state));
  }
  return all;
}

Checkpoint Engine::save(const RunFolder* folder, const std::string& name, Checkpoint checkpoint, int keep) {
  if (!options_.sharded_checkpoints || !parts_.strategy.has_pieces()) {
    put(checkpoint);
    if (folder) folder->save(name, checkpoint, keep);
    return checkpoint;
  }
  return save_sharded(folder, std::filesystem::path(name).replace_extension(), std::move(checkpoint), keep);
}

Checkpoint Engine::save_sharded(const RunFolder* folder, const std::string& name, Checkpoint checkpoint, int keep,
                                const std::function<void(const std::filesystem::path&)>& add) {
  finish_saving();
  put_position(checkpoint);
  written_ = parts_.world.first_says(folder ? folder->file(name).string() : "", "checkpoint");
  if (written_.empty()) return checkpoint;
  if (!writer_)
    writer_ = std::make_unique<dist::CheckpointWriter>(parts_.world.group(), dist::Milliseconds{600'000},
                                                       dist::host_identity());
  std::map<std::string, StateDict> states;
  writer_->save(written_, pieces(states), checkpoint, keep, add);
  return checkpoint;
}

void Engine::finish_saving() {
  if (!writer_ || written_.empty()) return;
  writer_->wait();
  std::error_code there_is_none;
  if (parts_.world.is_first()) std::filesystem::remove(written_.string() + ".safetensors", there_is_none);
  written_.clear();
}

Checkpoint Engine::read(const std::string& path) const {
  return parts_.strategy.has_pieces() ? read_notes(path, parts_.world) : load_checkpoint(path);
}

void Engine::take_pieces(const std::string& path) {
  const dist::ShardedCheckpoint saved(path, CheckpointReader::Seal::later);  // read_notes() has checked it
  if (parts_.averages) {
    const auto& parts = saved.index().parts;
    const bool has = std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.first == "ema"; });
    WEFT_CHECK(has, "checkpoint ", path, " was made without --ema: its averages cannot be resumed");
  }
  std::map<std::string, StateDict> states;
  auto own = pieces(states);
  std::vector<std::pair<std::string, dist::ShardedState*>> wanted;
  for (auto& [part, state] : own) wanted.emplace_back(part, &state);
  saved.load(wanted);
  for (auto& [part, state] : own)
    if (part != "model") states[part].scalars = state.scalars;
  parts_.optimizer.load_state_dict(states["optimizer"]);
  if (parts_.averages) parts_.averages->load_state_dict(states["ema"], states["ema_buffers"]);
  if (parts_.scaler) parts_.scaler->load_state_dict(states["loss_scaler"]);
}

void Engine::take_whole(const std::string& path, const Checkpoint& saved, bool with_model) {
  if (with_model) parts_.strategy.load_model(str("checkpoint ", path, ": model"), saved.part("model"));
  parts_.optimizer.load_state_dict(parts_.strategy.part_of(saved.part("optimizer")));
  load_averages(path, saved, parts_.strategy, parts_.averages);
  if (parts_.scaler) parts_.scaler->load_state_dict(saved.part("loss_scaler"));
}

void Engine::take_parts(const std::string& path) {
  if (!parts_.strategy.has_pieces()) return take_whole(path, load_checkpoint(path), /*with_model=*/true);
  read_notes(path, parts_.world);
  take_pieces(path);
}

void Engine::take(const std::string& path, const Checkpoint& saved, bool with_model) {
  require_same_step(path, saved,
                    {.batch_size = task_.batch_size(), .accumulate = options_.accumulate, .ranks = data_ranks()});
  require_same_checkpoint(parts_.world, path, saved);
  const auto steps = saved.integers.find("steps_per_epoch");
  WEFT_CHECK(steps == saved.integers.end() || steps->second == steps_per_epoch(), "checkpoint ", path,
             " was made with ", steps->second, " steps per epoch, this run has ", steps_per_epoch(),
             ": another data set. Name that of the checkpoint, or start a new run from its weights");
  if (saved.parts.empty() && parts_.strategy.has_pieces())
    take_pieces(path);
  else
    take_whole(path, saved, with_model);
  load_generator(saved, parts_.world);
  const auto number = [&](const char* name, double otherwise) {
    return saved.numbers.contains(name) ? saved.number(name) : otherwise;
  };
  position_ = {.epoch = saved.integer("epoch"),
               .step_in_epoch = saved.integer("step_in_epoch"),
               .step = saved.integer("step"),
               .samples = saved.integer("images"),
               .loss_sum = saved.number("loss_sum"),
               .correct = number("correct", 0),
               .best_score = number("best_accuracy", Position().best_score),
               .best_epoch = saved.integers.contains("best_epoch") ? saved.integer("best_epoch") : -1};
}

}  // namespace weft::train
