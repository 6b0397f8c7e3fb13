// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/trainer_state.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "io/atomic_file.h"
#include "io/checkpoint_reader.h"
#include "io/disk_work.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "io/weights/weights_file.h"
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

/// The last one first.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (number_of(entry.path()) >= 0 && fs::exists(entry.path() / kFile, ignored)) found.push_back(entry.path());
  std::ranges::sort(found, std::greater(), number_of);
  return found;
}

/// Checksums of each file of the folder but the state, which holds them, and shards, which are checked by their index.
std::map<std::string, uint32_t> checksums_of(const fs::path& folder) {
  std::map<std::string, uint32_t> checksums;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == kFile || name.starts_with("rank_") || name.starts_with('.')) continue;
    checksums[name] = checksum_of(entry.path()).first;
  }
  return checksums;
}

/// Errors: a file is missing, or is not as it was written. The folder of Hugging Face's Trainer has no checksums but
/// that of zip archives.
void check_whole(const fs::path& folder) {
  const TrainerState state = read_trainer_state(folder / kFile);
  for (const auto& [name, checksum] : state.checksums) {
    WEFT_CHECK(checksum_of(folder / fs::path(name).filename()).first == checksum,
               "checkpoint: ", (folder / name).string(), ": damaged: its bytes do not fit their checksum in ", kFile);
  }
  if (state.checksums.empty()) open_torch(folder / "optimizer.pt")->check();
  if (!is_sharded(folder)) return;
  const DiskWork work("reading " + folder.string());
  CheckpointReader(folder).check();
}

}  // namespace

bool is_sharded(const fs::path& checkpoint) {
  std::error_code ignored;
  return !checkpoint.empty() && fs::exists(checkpoint / CheckpointIndex::kFileName, ignored);
}

void write_trainer_state(const fs::path& path, const TrainerState& state, const Options& options) {
  Json history = Json::array();
  for (const std::string& line : state.history) history.push_back(Json::parse(line));
  const Json json{{"best_global_step", nullptr},
                  {"best_metric", nullptr},
                  {"best_model_checkpoint", nullptr},
                  {"epoch", state.epoch},
                  {"eval_steps", options.save_interval},
                  {"global_step", state.step},
                  {"is_hyper_param_search", false},
                  {"is_local_process_zero", true},
                  {"is_world_process_zero", true},
                  {"log_history", history},
                  {"logging_steps", options.log_interval},
                  {"max_steps", state.total_steps},
                  {"num_input_tokens_seen", 0},
                  {"num_train_epochs", options.epochs},
                  {"save_steps", options.save_interval},
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
                        {"losses", state.losses},
                        {"crc32c", checksums_of(path.parent_path())}}}}}}},
                  {"total_flos", 0.0},
                  {"train_batch_size", options.batch_size},
                  {"trial_name", nullptr},
                  {"trial_params", nullptr}};
  write_atomically(path, json.dump(2) + '\n', "trainer state");
}

namespace {

int64_t integer_at(const Json& json, const char* key) {
  return json_integer<int64_t>(json.at(key), str("trainer state: ", key));
}

void take_own(const Json& own, TrainerState& state) {
  state.texts_per_step = integer_at(own, "texts_per_step");
  state.logged = integer_at(own, "logged_step");
  state.run_loss = own.at("run_loss").get<double>();
  state.losses = own.at("losses").get<std::vector<double>>();
  if (own.contains("crc32c"))
    for (const auto& [name, checksum] : own.at("crc32c").items())
      state.checksums[name] = json_integer<uint32_t>(checksum, "trainer state: crc32c");
  WEFT_CHECK(state.texts_per_step > 0 && !state.losses.empty(),
             "trainer state: expected texts per step and losses, got none");
}

/// From the printed lines, whose losses are means over the steps since the one before.
void take_foreign(const Json& history, TrainerState& state) {
  for (const Json& line : history) {
    if (!line.contains("loss")) continue;
    const int64_t step = integer_at(line, "step");
    const double loss = line.at("loss").is_null() ? std::nan("") : line.at("loss").get<double>();
    state.run_loss += loss * (static_cast<double>(step) - static_cast<double>(state.logged));
    state.logged = step;
  }
  state.logged = state.step;
  state.losses = {0};
}

}  // namespace

TrainerState read_trainer_state(const fs::path& path) {
  const std::string text = read_text(path, "trainer state");
  check_ordered(text, "trainer state: " + path.string());
  try {
    const Json json = Json::parse(standard_json(text));  // from Python: a loss may be NaN
    TrainerState state{.step = integer_at(json, "global_step"),
                       .total_steps = integer_at(json, "max_steps"),
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
         printable(error.what()), "'");
  }
}

std::string checkpoint_folder(const std::string& wanted, const fs::path& folder) {
  if (wanted.empty()) return "";
  if (wanted == "last" || wanted == "auto") {
    const std::vector<fs::path> found = checkpoints_in(folder);
    WEFT_CHECK(!found.empty() || wanted == "auto", "--resume-from-checkpoint last: there is no ", kPrefix, "N in ",
               folder.string());
    return found.empty() ? "" : found.front().string();
  }
  WEFT_CHECK(fs::exists(fs::path(wanted) / kFile), "--resume-from-checkpoint ", wanted, ": expected a folder with ",
             kFile, ", as finetune writes it");
  return wanted;
}

std::string whole_checkpoint_folder(const std::string& wanted, const fs::path& folder, std::string& note) {
  const std::string newest = checkpoint_folder(wanted, folder);
  if (newest.empty()) return "";
  std::vector<fs::path> candidates{newest};
  if (wanted == "last" || wanted == "auto") candidates = checkpoints_in(folder);
  std::string first;  // error of the newest
  std::error_code ignored;
  if (wanted == "last" || wanted == "auto")
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (number_of(entry.path()) > number_of(newest) && entry.is_directory(ignored))
        first =
            str("checkpoint: ", entry.path().string(), " has no ", kFile, ", which is written last: it is not whole");
  for (const fs::path& one : candidates) {
    try {
      check_whole(one);
      if (!first.empty()) note = str(first, "; going on from ", one.string());
      return one.string();
    } catch (const Error& error) {
      if (first.empty()) first = error.what();
    }
  }
  fail(first);
}

}  // namespace weft::finetune
