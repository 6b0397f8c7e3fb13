// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/options.h"

#include "apps/support/python_text.h"
#include "apps/support/run_flags.h"
#include "apps/support/yaml.h"
#include "core/text.h"

namespace weft::nersc {
namespace {

constexpr double kLargest = 1e6;

using support::Range;
using Words = std::vector<std::string>;

/// Calls `visit` with each key of a section, its variable, and its permitted values.
template <class Values, class Visit>
void visit_keys(Values& c, Visit&& visit) {
  visit("num_data_workers", c.num_data_workers, Range{.min = 0, .max = 1024});
  visit("num_samples", c.num_samples, Range{.min = 1, .max = 1e9});
  visit("img_size", c.img_size, Range{.min = 1, .max = 1 << 14});
  visit("in_chan", c.in_chan, Range{.min = 1, .max = 4096});
  visit("out_chan", c.out_chan, Range{.min = 1, .max = 4096});
  visit("model", c.model, Words{"cnn"});
  visit("depth", c.depth, Range{.min = 2, .max = 1000});
  visit("loss_func", c.loss_func, Words{"mse"});
  visit("optimizer", c.optimizer, Words{"adam", "sgd"});
  visit("lr", c.lr, Range{.min = 0, .above = true});
  visit("momentum", c.momentum, Range{.min = 0, .max = 1});
  visit("scheduler", c.scheduler, Words{"none", "cosine", "reducelr"});
  visit("max_cosine_lr_epochs", c.max_cosine_lr_epochs, Range{.min = 1, .max = kLargest});
  visit("patience", c.patience, Range{.min = 0, .max = kLargest});
  visit("max_epochs", c.max_epochs, Range{.min = 1, .max = kLargest});
  visit("batch_size", c.batch_size, Range{.min = 1, .max = kLargest});
  visit("valid_batch_size", c.valid_batch_size, Range{.min = 1, .max = kLargest});
  visit("seed", c.seed, Range{.min = 0});
  visit("log_to_screen", c.log_to_screen);
  visit("save_checkpoint", c.save_checkpoint);
  visit("log_to_wandb", c.track);
  visit("entity", c.entity);
  visit("project", c.project);
}

/// A value as YAML.
std::string text_of(int64_t value) { return str(value); }
std::string text_of(double value) { return support::python_number(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) {
  std::string out = "'";
  for (const char c : value) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

}  // namespace

bool parse_options(int argc, char** argv, bool several, Options& o) {
  support::Flags flags(
      several ? "train_multi_gpu" : "train_single_gpu",
      several ? "Trains a small convolutional net on random fields, on all ranks that were started together (srun, "
                "torchrun, weft-run, mpirun). A run whose checkpoint is there goes on from it."
              : "Trains a small convolutional net on random fields, on one GPU or the CPU. A run whose checkpoint is "
                "there goes on from it.",
      support::ConfigFlag::none);
  flags.add("yaml_config", o.yaml_config, "file of configurations");
  flags.add("config", o.config, "section of that file");
  flags.add("root_dir", o.root_dir, "folder of all runs; this one's is ROOT_DIR/CONFIG/RUN_NUM");
  flags.add("run_num", o.run_num, "name of the run");
  flags.add("lr", o.lr, "learning rate in place of the file's, for sweeps", {.min = 0, .above = true});
  flags.add("batch_size", o.batch_size, "batch size in place of the file's, for sweeps", {.min = 1, .max = kLargest});
  flags.add("sweep_id", o.sweep_id, "the run is one of this sweep: its folder is ROOT_DIR/sweeps/SWEEP_ID/RUN_NUM");
  support::add_run_flags(flags, o, several ? "device backend dry-run" : "device dry-run");
  if (several)
    flags.example("srun -n 4 train_multi_gpu --yaml_config configs/default.yaml --config default --run_num 1");
  else
    flags.example("train_single_gpu --yaml_config configs/default.yaml --config default --run_num 1");
  if (!flags.parse(argc, argv)) return false;
  for (const auto& [flag, name] : {std::pair{"run_num", &o.run_num}, std::pair{"sweep_id", &o.sweep_id}})
    if (name->find('/') != std::string::npos || *name == ".." || (name == &o.run_num && name->empty()))
      throw train::UsageError(printable(str("--", flag, ": expected a name without '/', got '", *name, "'")));
  return true;
}

Config read_config(const Options& options) {
  support::YamlSection section(options.yaml_config, options.config);
  Config config;
  visit_keys(config,
             [&](const char* key, auto& variable, const auto&... allowed) { section.read(key, variable, allowed...); });
  for (const char* unused : {"train_path", "val_path"}) section.ignore(unused);  // samples are made on demand
  section.finish();
  if (options.lr > 0) config.lr = options.lr;
  if (options.batch_size > 0) config.batch_size = options.batch_size;
  return config;
}

std::filesystem::path experiment_folder(const Options& options, const Config& config) {
  const std::filesystem::path root = options.root_dir;
  if (!options.sweep_id.empty()) return root / "sweeps" / options.sweep_id / options.run_num;
  if (config.track) return root / "expts" / options.config / options.run_num;
  return root / options.config / options.run_num;
}

std::string yaml(const Config& config) {
  std::string out;
  visit_keys(config,
             [&](const char* key, const auto& value, const auto&...) { out += str(key, ": ", text_of(value), "\n"); });
  return out;
}

train::HyperParameters hyper_parameters(const Config& config) {
  train::HyperParameters out;
  visit_keys(config, [&](const char* key, const auto& value, const auto&...) {
    if constexpr (std::is_same_v<decltype(value), const int64_t&>)
      out.emplace_back(key, static_cast<double>(value));
    else
      out.emplace_back(key, value);
  });
  return out;
}

}  // namespace weft::nersc
