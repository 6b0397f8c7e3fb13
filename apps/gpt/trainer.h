// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <memory>
#include <optional>

#include "apps/gpt/gpt_files.h"
#include "apps/gpt/options.h"
#include "data/text/byte_pair.h"
#include "data/text/token_windows.h"
#include "nn/models/language_model.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"

namespace weft::gpt {

using Tokens = data::TokenNumbers;

/// Sequences, and the token that follows each of their tokens: i64 [sequences, context].
struct Sequences {
  Tensor tokens, next;
  void fields(auto& v) { v("tokens", tokens), v("next", next); }
};

/// Trains a language model to say the next token. An epoch has as many sequences as the training text has tokens for;
/// their beginnings are drawn again for each epoch, the same for any number of ranks.
class Trainer final : public train::TypedTask<Sequences> {
 public:
  /// `folder`: of rank 0, null on the others and in a dry run. All that is given must outlive it. Errors: a text that
  /// is too short for one step.
  Trainer(const Options& options, const train::RunFolder* folder, const dist::World& world, const dist::Grid& grid,
          const data::BytePair& tokenizer, const GptConfig& config, const std::shared_ptr<nn::LanguageModel>& model,
          const Tokens& train, const Tokens& val);

  train::RunEnd run() { return engine_.run_in(folder_); }
  /// The plan of run(), for --dry-run.
  std::string plan() const;

 private:
  int64_t samples() const override;
  void before_step(Sequences& batch) override;
  train::Measured loss(const Sequences& batch) override;
  void log_steps(const train::StepSums::Totals& totals) override;
  train::Validation validate(const train::Epoch& epoch) override;
  void epoch_done(const train::Epoch& epoch, const train::Validation& validation) override;
  std::string save() override;
  void stopped(train::StopRule& rule) override;
  void ended(train::RunEnd end) override;
  void resume();

  const Options& options_;
  const train::RunFolder* folder_;
  const dist::World& world_;
  dist::Grid grid_;
  const data::BytePair& tokenizer_;
  const GptConfig& config_;
  std::shared_ptr<nn::LanguageModel> model_;
  Tokens train_;
  std::shared_ptr<const data::TokenWindows> val_;
  int64_t context_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::AdamW> adam_;
  train::Engine engine_;
  optim::SchedulePtr schedule_;
  std::optional<train::ScalarLog> log_;  // on rank 0; none in a dry run
  double val_loss_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace weft::gpt
