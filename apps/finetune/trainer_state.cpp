// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/trainer_state.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "io/atomic_file.h"
#include "io/file_bytes.h"
#include "kernels/error.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char *kFile = "trainer_state.json", *kPrefix = "checkpoint-";

/// N of `checkpoint-N`, else -1.
int64_t number_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kPrefix)) return -1;
  const char *begin = name.data() + std::string(kPrefix).size(), *end = name.data() + name.size();
  int64_t number = -1;
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end ? number : -1;
}

std::string last_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  int64_t largest = -1;
  fs::path found;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const int64_t number = number_of(entry.path());
    if (number > largest && fs::exists(entry.path() / kFile, ignored)) largest = number, found = entry.path();
  }
  return found.string();
}

}  // namespace

void write_trainer_state(const fs::path& path, const TrainerState& state, const Options& options) {
  Json history = Json::array();
  for (const std::string& line : state.history) history.push_back(Json::parse(line));
  const Json json{{"best_global_step", nullptr},
                  {"best_metric", nullptr},
                  {"best_model_checkpoint", nullptr},
                  {"epoch", state.epoch},
                  {"eval_steps", options.save_steps},
                  {"global_step", state.step},
                  {"is_hyper_param_search", false},
                  {"is_local_process_zero", true},
                  {"is_world_process_zero", true},
                  {"log_history", history},
                  {"logging_steps", options.logging_steps},
                  {"max_steps", state.total_steps},
                  {"num_input_tokens_seen", 0},
                  {"num_train_epochs", options.epochs},
                  {"save_steps", options.save_steps},
                  {"stateful_callbacks",
                   {{"TrainerControl",  // the Trainer's own, without which it saves no checkpoint
                     {{"args",
                       {{"should_epoch_stop", false},
                        {"should_evaluate", false},
                        {"should_log", false},
                        {"should_save", true},
                        {"should_training_stop", state.step == state.total_steps}}},
                      {"attributes", Json::object()}}},
                    {"weft",
                     {{"args", Json::object()},
                      {"attributes",
                       {{"texts_per_step", state.texts_per_step},
                        {"logged_step", state.logged},
                        {"run_loss", state.run_loss},
                        {"losses", state.losses}}}}}}},
                  {"total_flos", 0.0},
                  {"train_batch_size", options.batch_size},
                  {"trial_name", nullptr},
                  {"trial_params", nullptr}};
  write_atomically(path, json.dump(2) + '\n', "trainer state");
}

namespace {

void take_own(const Json& own, TrainerState& state) {
  state.texts_per_step = own.at("texts_per_step").get<int64_t>();
  state.logged = own.at("logged_step").get<int64_t>();
  state.run_loss = own.at("run_loss").get<double>();
  state.losses = own.at("losses").get<std::vector<double>>();
  WEFT_CHECK(state.texts_per_step > 0 && !state.losses.empty(),
             "trainer state: expected texts per step and losses, got none");
}

/// From the printed lines, whose losses are means over the steps since the one before.
void take_foreign(const Json& history, TrainerState& state) {
  for (const Json& line : history) {
    if (!line.contains("loss")) continue;
    const auto step = line.at("step").get<int64_t>();
    state.run_loss += line.at("loss").get<double>() * static_cast<double>(step - state.logged);
    state.logged = step;
  }
  state.logged = state.step;
  state.losses = {0};
}

}  // namespace

TrainerState read_trainer_state(const fs::path& path) {
  const std::string text = read_text(path, "trainer state");
  try {
    const Json json = Json::parse(text);
    TrainerState state{.step = json.at("global_step").get<int64_t>(),
                       .total_steps = json.at("max_steps").get<int64_t>(),
                       .epoch = json.at("epoch").get<double>(),
                       .history = {}};
    for (const Json& line : json.at("log_history")) state.history.push_back(line.dump());
    const Json callbacks = json.value("stateful_callbacks", Json::object());
    if (callbacks.contains("weft"))
      take_own(callbacks.at("weft").at("attributes"), state);
    else
      take_foreign(json.at("log_history"), state);
    WEFT_CHECK(state.step >= 0 && state.step <= state.total_steps, "trainer state: ", path.string(), ": step ",
               state.step, " of ", state.total_steps, " makes no sense");
    return state;
  } catch (const Json::exception& error) {
    fail("trainer state: ", path.string(), ": expected what finetune or Hugging Face's Trainer writes, got '",
         error.what(), "'");
  }
}

std::string checkpoint_folder(const std::string& wanted, const fs::path& folder) {
  if (wanted.empty()) return "";
  if (wanted == "last" || wanted == "auto") {
    const std::string found = last_checkpoint(folder);
    WEFT_CHECK(!found.empty() || wanted == "auto", "--resume-from-checkpoint last: there is no ", kPrefix, "N in ",
               folder.string());
    return found;
  }
  WEFT_CHECK(fs::exists(fs::path(wanted) / kFile), "--resume-from-checkpoint ", wanted, ": expected a folder with ",
             kFile, ", as finetune writes it");
  return wanted;
}

}  // namespace weft::finetune
