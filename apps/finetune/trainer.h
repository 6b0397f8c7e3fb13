// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "apps/finetune/configuration.h"
#include "apps/finetune/options.h"
#include "apps/finetune/texts.h"
#include "apps/finetune/tokenizer_files.h"
#include "nn/models/bert.h"
#include "train/record/run_folder.h"

namespace weft::finetune {

/// Bert as a function of one tensor, which data parallelism needs: input [N, 3, tokens] of TextLoader to logits [N,
/// classes].
struct Classifier : nn::Bert {
  using Bert::Bert;
  Tensor forward(const Tensor& x) const override;
};

/// The model and the texts of a run.
struct Experiment {
  const Options& options;
  const train::RunFolder* folder;  ///< rank 0 has it; null on the others and in a dry run
  const dist::World& world;
  const Tokenizer& tokenizer;
  SavedConfiguration configuration;
  std::shared_ptr<Classifier> model;
  Texts train, dev;
};

/// All epochs, or the rest after the checkpoint of --resume-from-checkpoint; --dry-run prints the plan alone. Prints
/// lines as Hugging Face's Trainer does. All ranks call it. Returns the exit code.
int train_classifier(const Experiment& experiment);

}  // namespace weft::finetune
