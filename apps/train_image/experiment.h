// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/train_image/options.h"
#include "data/dataset.h"
#include "data/image_loader.h"
#include "dist/group/world.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/progress.h"
#include "train/record/confusion_matrix.h"

namespace weft::train_image {

constexpr int kMostConfused = 1000;  ///< classes of a confusion matrix, which all ranks add up

/// The statistics that normalise pixels, per channel; white is 1.
struct PixelStatistics {
  std::vector<float> mean, std;
  std::string origin;  ///< `the training part`, …

  /// As texts of a checkpoint and metadata of what --export writes: `pixel_mean`, `pixel_std`.
  std::map<std::string, std::string> texts() const;
};

/// The objects that the options describe: sets, loaders, the model on its device. `auto` values are resolved in
/// `options`.
struct Experiment {
  /// Errors: every wrong option that Options could not see: paths, names, devices, sizes that do not fit the set.
  /// `ranks` must outlive it.
  Experiment(const Options& given, const dist::World& ranks);

  Options options;
  const dist::World& ranks;
  Device device;
  std::shared_ptr<const data::Dataset> train_set;  ///< none with --eval-only
  std::shared_ptr<const data::Dataset> val_set;
  PixelStatistics pixels;
  std::string class_note;  ///< how the classes were matched with those of --weights
  int classes = 0;
  int64_t height = 0, width = 0, channels = 0;                  ///< size of the model's input
  std::shared_ptr<data::ImageLoader> train_loader, val_loader;  ///< this rank's; no val_loader where it has no image
  std::shared_ptr<nn::Module> model;
  std::unique_ptr<train::Strategy> strategy;
  std::string summary;  ///< the table of layers, with --summary

  std::unique_ptr<optim::Optimizer> make_optimizer() const;
  /// The learning rate as a function of the step of the whole run.
  optim::SchedulePtr make_schedule() const;
  int64_t steps_per_epoch() const { return train_loader->steps_per_epoch(); }
  /// The texts in checkpoints and --export: PixelStatistics::texts(), and the names of the classes.
  std::map<std::string, std::string> texts() const;
  /// Images of a whole step on all ranks.
  int64_t global_batch() const { return options.batch_size * ranks.size(); }
  int64_t total_steps() const { return steps_per_epoch() * options.epochs; }

 private:
  void open_sets();
  void match_classes();
  void make_loaders();
  void make_model();
};

struct Evaluation {
  double loss = 0;                  ///< mean cross entropy per image
  double accuracy = 0;              ///< share of right answers
  int64_t correct = 0, images = 0;  ///< counts of all ranks
  double images_per_second = 0;
  std::optional<train::ConfusionMatrix> confusion = {};  ///< none above kMostConfused classes
};

/// Runs the experiment's model, in evaluation mode, over everything that the ranks' loaders have, each image once;
/// the counts of all ranks are added up. All ranks call it. `progress` shows how far this rank is.
Evaluation evaluate(Experiment& experiment, train::Progress& progress);

}  // namespace weft::train_image
