// SPDX-License-Identifier: Apache-2.0
#include "train/run_options.h"

#include "nn/models/decoder.h"
#include "nn/models/gpt.h"
#include "nn/transformer.h"
#include "train/exit.h"

namespace weft::train {

void check_sharding(const RunOptions& o) {
  if (o.parallel == "fsdp" || (o.parallel == "auto" && o.auto_shards)) return;
  if (o.fsdp_offload != "none" || o.fsdp_strategy != "full_shard" || o.fsdp_shard_size > 0 ||
      o.fsdp_accumulate != "whole")
    throw UsageError(
        "--fsdp-offload, --fsdp-strategy, --fsdp-shard-size and --fsdp-accumulate: expected --parallel fsdp, got " +
        o.parallel);
}

dist::World join_ranks(const RunOptions& o) {
  check_sharding(o);
  dist::World ranks = dist::init({.alone = o.parallel == "none", .backend = o.backend, .device = o.device});
  require_same_settings(ranks, o.toml,
                        "out data weights device workers export profile tokenizer vocab train-file validation-file "
                        "data-dir output-dir log-dir config-file machine-rank main-process-ip main-process-port "
                        "num-processes");
  return ranks;
}

data::SamplerOptions training_order(const RunOptions& o, const dist::World& ranks) {
  return {
      .seed = static_cast<uint64_t>(o.seed), .rank = ranks.rank(), .world = ranks.size(), .tail = data::Tail::joined};
}

data::SamplerOptions validation_order(const dist::World& ranks) {
  return {.shuffle = false, .rank = ranks.rank(), .world = ranks.size(), .tail = data::Tail::uneven};
}

data::ImageLoaderOptions image_loading(const RunOptions& o, Device device) {
  return {.batch_size = o.batch_size,
          .workers = static_cast<int>(o.workers),
          .seed = static_cast<uint64_t>(o.seed),
          .device = device};
}

void defer_weights(RunOptions& o) {
  if (o.parallel == "fsdp") o.deferred = std::make_shared<nn::DeferredInit>();
}

StrategyOptions strategy_options(const RunOptions& o, std::optional<Device> device) {
  return {.kind = o.parallel,
          .bucket_mb = o.bucket_mb,
          .compress_bf16 = o.grad_compression == "bf16",
          .sync_batch_norm = o.sync_batch_norm,
          .strategy = o.fsdp_strategy,
          .min_num_params = o.min_num_params,
          .offload = o.fsdp_offload,
          .shard_size = o.fsdp_shard_size,
          .low_precision = o.dtype() == DType::bf16,
          .sharded_accumulation = o.fsdp_accumulate == "sharded",
          .deferred = o.deferred,
          .device = device};
}

EngineOptions engine_options(const RunOptions& o) {
  return {.epochs = o.epochs,
          .accumulate = o.accumulate,
          .clip_norm = o.clip_norm,
          .stop = stop_options(o),
          .precision = o.dtype(),
          .graph = o.graph,
          .log_interval = o.log_interval,
          .save_interval = o.save_interval,
          .sharded_checkpoints = o.fsdp_checkpoints == "sharded",
          .unit = o.unit,
          .program = o.program,
          .out = o.out,
          .profile = o.profile,
          .profile_steps = o.profile_steps};
}

StopOptions stop_options(const RunOptions& o) { return {.max_steps = o.max_steps, .usr1_stops = o.usr1 == "stop"}; }

void place(const RunOptions& o, nn::Module& model, Device device) {
  if (o.parallel != "fsdp") model.to(device);
  if (o.precision != "fp8") return;
  int64_t linears = 0;
  for (const auto& [path, module] : model.modules())
    if (dynamic_cast<nn::TransformerBlock*>(module) || dynamic_cast<nn::GptBlock*>(module) ||
        dynamic_cast<nn::DecoderBlock*>(module))
      linears += nn::use_fp8(*module);
  if (linears == 0)
    throw UsageError("--precision fp8: expected a model of transformer blocks, such as vit_small16, got " + o.model);
}

std::optional<NewRun> new_run(const RunOptions& o, const std::vector<std::string>& own_names) {
  if (goes_on_in(o.out, o.resume)) return {};
  return NewRun{o.overwrite, "--resume auto continues it, --out names another folder", own_names};
}

ChangedSettings changed_settings(const std::string& saved, const RunOptions& o, const std::string& ignored) {
  // Where files are; how fast, on what and how long a run goes.
  return changed_settings(
      saved, o.toml,
      "out resume overwrite keep dry-run max-steps log-interval save-interval usr1 profile "
      "profile-steps device workers graph recompute parallel backend bucket-mb fsdp-strategy fsdp-min-params "
      "min-num-params fsdp-shard-size fsdp-offload fsdp-checkpoints fsdp-accumulate batch-size accumulate weights " +
          ignored);
}

ChangedSettings changed_settings(const Checkpoint& saved, const RunOptions& o, const std::string& ignored) {
  const auto config = saved.texts.find("config");
  return config == saved.texts.end() ? ChangedSettings() : changed_settings(config->second, o, ignored);
}

}  // namespace weft::train
