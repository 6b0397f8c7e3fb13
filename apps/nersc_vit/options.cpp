// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/options.h"

#include <filesystem>

#include "apps/support/run_flags.h"
#include "apps/support/yaml.h"
#include "io/npy.h"

namespace weft::nersc_vit {
namespace {

using train::UsageError;
using Words = std::vector<std::string>;

constexpr support::Range kPositive{.min = 1, .max = 1e9};
constexpr support::Range kFromZero{.min = 0, .max = 1e9};

void add_flags(support::Flags& flags, Options& o) {
  flags.add("run_num", o.run_num, "name of the run: the last folder of its files");
  flags.add("yaml_config", o.yaml_config, "file of configurations");
  flags.add("config", o.config, "the section of it that counts");
  flags.add_choice("amp_mode", o.precision, {"none", "fp16", "bf16"},
                   "products in f16 (with a loss scale) or bf16; weights stay f32. Over the key amp_mode");
  flags.add("enable_fused", o.enable_fused, "without effect: Adam is always one kernel");
  flags.add("enable_jit", o.enable_jit, "without effect: nothing is compiled while it runs; see --graph");
  flags.add("local_batch_size", o.local_batch_size,
            "samples per step of each data rank; 0: the key global_batch_size over the data ranks", kFromZero);
  flags.add("num_iters", o.num_iters, "steps; over the key num_iters", kPositive);
  flags.add("num_data_workers", o.num_data_workers, "threads of each rank that read fields; over the key",
            {.min = 0, .max = 256});
  flags.add_choice("data_loader_config", o.data_loader_config, {"pytorch", "dali"},
                   "without effect: there is one loader");
  flags.add("bucket_cap_mb", o.bucket_cap_mb, "MiB of gradients that data ranks average at once",
            {.min = 1, .max = 100000});
  flags.add("disable_broadcast_buffers", o.disable_broadcast_buffers, "without effect: this model has no buffers");
  flags.add("noddp", o.noddp, "data ranks do not average their gradients: what communication costs");
  flags.add("row_parallel_size", o.row_parallel_size, "ranks that hold each layer together (tensor parallelism)",
            kPositive);
  flags.add(
      "sequence_parallel", o.sequence_parallel,
      "the ranks of --row_parallel_size divide the tokens, too: each keeps its own for norms and sums, with as many "
      "bytes sent and less memory");
  flags.add("col_parallel_size", o.col_parallel_size, "must be 1: only rows of a product are divided", kPositive);
  flags.add("pipeline_parallel_size", o.pipeline_parallel_size,
            "stages of the model's blocks, each on ranks of its own (pipeline parallelism)", kPositive);
  flags.add("pipeline_chunks", o.pipeline_chunks,
            "stretches of blocks on each stage; above 1: the interleaved schedule", kPositive);
  flags.add("micro_batches", o.micro_batches,
            "parts of a data rank's batch that go through the stages one after another; 0: four for each stage, at "
            "most one a sample",
            kFromZero);
  flags.add_choice("graph", o.graph, {"auto", "on", "off"},
                   "capture the step once and replay it as a CUDA graph; auto: on a GPU with one rank");
  flags.add("max_grad_norm", o.clip_norm, "largest norm of the gradient; 0: no limit", {.min = 0});
  flags.add("seed", o.seed, "of weights and order", {.min = 0, .max = 1e15});
  flags.add("resume", o.goes_on, "go on from checkpoint.safetensors of this run where there is one");
  support::add_run_flags(flags, o,
                         "recompute device parallel backend grad-compression fsdp-strategy min-num-params "
                         "fsdp-shard-size fsdp-offload fsdp-checkpoints overwrite dry-run");
  flags.example("train_vit --yaml_config fields/ViT.yaml --config base");
  flags.example("srun -n 4 train_vit --config base --row_parallel_size 2 --amp_mode bf16");
  flags.example("srun -n 8 train_vit --config base --pipeline_parallel_size 4 --pipeline_chunks 3");
  flags.example("srun -n 8 train_vit --config mp --parallel fsdp --recompute --amp_mode bf16");
}

/// Calls `visit` with each key of a section that --resume compares, its variable and its permitted values.
template <class Values, class Visit>
void visit_keys(Values& o, Visit&& visit) {
  visit("embed_dim", o.model.width, kPositive);
  visit("depth", o.model.depth, kPositive);
  visit("num_heads", o.model.heads, kPositive);
  visit("patch_size", o.model.patch, kPositive);
  visit("img_size", o.img_size);
  visit("n_in_channels", o.model.in_channels, kPositive);
  visit("n_out_channels", o.model.out_channels, kPositive);
  visit("dt", o.dt, kPositive);
  visit("global_batch_size", o.global_batch_size, kPositive);
  visit("num_iters", o.num_iters, kPositive);
  visit("lr", o.lr, support::Range{.min = 0, .above = true});
  visit("lr_schedule", o.lr_schedule, Words{"cosine", "none"});
  visit("warmup", o.warmup, kFromZero);
  visit("amp_mode", o.precision, Words{"none", "fp16", "bf16"});
  visit("num_data_workers", o.num_data_workers, support::Range{.min = 0, .max = 256});
}

void read_yaml(Options& o) {
  support::YamlSection yaml(o.yaml_config, o.config);
  visit_keys(o, [&](const char* key, auto& variable, const auto&... allowed) { yaml.read(key, variable, allowed...); });
  double dropout = 0;
  yaml.read("dropout", dropout, {.min = 0, .max = 1});
  if (dropout > 0) throw UsageError(str(yaml.where("dropout"), ": expected 0, got ", dropout, ": this model has none"));
  if (o.img_size.size() != 2 || o.img_size[0] < 1 || o.img_size[1] < 1)
    throw UsageError(str(yaml.where("img_size"), ": expected two sizes such as [360, 720]"));
  o.model.rows = o.img_size[0], o.model.columns = o.img_size[1];
  yaml.read("mlp_ratio", o.model.hidden_ratio, kPositive);
  yaml.read("expdir", o.expdir);
  yaml.read("enable_fused", o.enable_fused);
  yaml.read("enable_jit", o.enable_jit);
  yaml.read("limit_nsamples", o.limit_nsamples, kPositive);
  yaml.read("limit_nsamples_val", o.limit_nsamples_val, kPositive);
  yaml.read("optimizer", o.optimizer, {"Adam"});
  yaml.read("data_loader_config", o.data_loader_config, {"pytorch", "dali"});
  for (const auto& [key, path] :
       {std::pair("train_data_path", &o.train_data_path), std::pair("valid_data_path", &o.valid_data_path),
        std::pair("global_means_path", &o.global_means_path), std::pair("global_stds_path", &o.global_stds_path)})
    if (!yaml.read(key, *path)) throw UsageError(str(o.yaml_config, ": section ", o.config, ": ", key, " is missing"));
  for (const char* key : {"inf_data_path", "time_means_path", "wireup_info", "wireup_store", "enable_apex"})
    yaml.ignore(key);
  yaml.finish();
}

void check(const Options& o) {
  if (o.col_parallel_size != 1)
    throw UsageError(str("--col_parallel_size: expected 1, got ", o.col_parallel_size,
                         ": layers are divided over --row_parallel_size alone"));
  if (o.model.heads % o.row_parallel_size != 0)
    throw UsageError(
        str("--row_parallel_size: ", o.model.heads, " heads (num_heads) do not divide by ", o.row_parallel_size));
  if (o.sequence_parallel && o.row_parallel_size == 1)
    throw UsageError("--sequence_parallel: expected --row_parallel_size above 1, got 1");
  if (o.model.depth < o.pipeline_parallel_size * o.pipeline_chunks)
    throw UsageError(str("--pipeline_parallel_size: ", o.model.depth, " blocks (depth) are too few for ",
                         o.pipeline_parallel_size, " stages of ", o.pipeline_chunks,
                         o.pipeline_chunks == 1 ? " chunk" : " chunks"));
  if (o.pipeline_chunks > 1 && o.pipeline_parallel_size == 1)
    throw UsageError("--pipeline_chunks: expected --pipeline_parallel_size above 1, got 1: there is no pipeline");
  train::check_sharding(o);
  if (o.pipeline_parallel_size > 1 && o.min_num_params != Options().min_num_params)
    throw UsageError("--min-num-params: expected --pipeline_parallel_size 1, got " + str(o.pipeline_parallel_size) +
                     ": each block of a pipeline is a unit");
  if (o.noddp && o.parallel != "auto") throw UsageError("--noddp: expected --parallel auto, got " + o.parallel);
  if (o.graph == "on" && o.precision == "fp16")
    throw UsageError("--graph on: expected --amp_mode none or bf16, got fp16, whose loss scale the host decides");
}

void note_what_means_nothing(Options& o) {
  if (o.lr_schedule == "none" && o.warmup > 0) o.notes.push_back("warmup: lr_schedule none keeps the rate as it is");
  if (o.enable_fused) o.notes.push_back("enable_fused: Adam is one kernel over all weights, with or without it");
  if (o.enable_jit) o.notes.push_back("enable_jit: nothing is compiled while it runs; --graph captures the step");
  if (o.data_loader_config == "dali")
    o.notes.push_back("data_loader_config dali: there is one loader, with num_data_workers threads");
  if (o.disable_broadcast_buffers) o.notes.push_back("disable_broadcast_buffers: this model has no buffers");
}

std::vector<float> statistics(const std::string& path) { return read_npy(path).to_vector<float>(); }

}  // namespace

bool parse_options(int argc, char** argv, Options& o) {
  support::Flags flags(
      "train_vit",
      "Trains a vision transformer to forecast weather fields, on one GPU or on a grid of data x model "
      "ranks.",
      support::ConfigFlag::none);
  add_flags(flags, o);
  if (!flags.parse(argc, argv)) return false;
  read_yaml(o);
  flags.parse(argc, argv);  // a flag wins over the key of the same name
  check(o);
  if (o.sequence_parallel) o.model.tokens = dist::Tokens::own;
  o.model.recompute = o.recompute;
  note_what_means_nothing(o);
  return true;
}

std::vector<std::pair<std::string, std::string>> listed(const Options& o) {
  std::vector<std::pair<std::string, std::string>> lines{{"config", o.config}, {"run_num", o.run_num}};
  const auto add = [&](const char* key, const auto& value, const auto&...) {
    if constexpr (std::is_same_v<decltype(value), const std::vector<int64_t>&>)
      lines.emplace_back(key, str('[', value[0], ", ", value[1], ']'));
    else
      lines.emplace_back(key, str(value));
  };
  visit_keys(o, add);
  add("row_parallel_size", o.row_parallel_size);
  add("sequence_parallel", o.sequence_parallel);
  add("pipeline_parallel_size", o.pipeline_parallel_size);
  add("pipeline_chunks", o.pipeline_chunks);
  add("micro_batches", o.micro_batches);
  add("max_grad_norm", o.clip_norm);
  add("seed", o.seed);
  add("train_data_path", o.train_data_path);
  add("valid_data_path", o.valid_data_path);
  const Options defaults;
  const auto add_if_set = [&](const char* key, auto member) {
    if (o.*member != defaults.*member) add(key, o.*member);
  };
  add_if_set("recompute", &Options::recompute);
  add_if_set("parallel", &Options::parallel);
  add_if_set("grad_compression", &Options::grad_compression);
  add_if_set("fsdp_strategy", &Options::fsdp_strategy);
  add_if_set("fsdp_shard_size", &Options::fsdp_shard_size);
  add_if_set("min_num_params", &Options::min_num_params);
  add_if_set("fsdp_offload", &Options::fsdp_offload);
  add_if_set("fsdp_checkpoints", &Options::fsdp_checkpoints);
  return lines;
}

std::string experiment_folder(const Options& o, int ranks) {
  std::string grid = o.row_parallel_size > 1 ? str(o.row_parallel_size, "MP") : "";
  if (o.pipeline_parallel_size > 1) grid += str(o.pipeline_parallel_size, "PP");
  if (grid.empty()) grid = str(ranks, "GPU");
  return (std::filesystem::path(o.expdir) / o.config / grid / o.run_num).string();
}

data::FieldSeriesOptions series_options(const Options& o, int64_t limit) {
  return {.dt = o.dt,
          .in_channels = o.model.in_channels,
          .out_channels = o.model.out_channels,
          .rows = o.model.rows,
          .columns = o.model.columns,
          .limit = limit,
          .means = statistics(o.global_means_path),
          .stds = statistics(o.global_stds_path)};
}

}  // namespace weft::nersc_vit
