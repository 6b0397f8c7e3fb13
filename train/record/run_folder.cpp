// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "dist/group/world.h"
#include "io/atomic_file.h"
#include "kernels/error.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_of_a_run(const std::string& name) {
  return is_one_of(name, {"config.toml", "config.yaml", "metrics.jsonl", "summary.json", "classes.txt"}) ||
         name.starts_with("events.out.tfevents.") || name.starts_with("checkpoint_") || name.starts_with("checkpoint-");
}

/// Hours of work, as opposed to a run's first files.
bool is_result(const std::string& name) {
  return name == "summary.json" || name.starts_with("checkpoint") || name.ends_with(".safetensors");
}

void begin_new_run(const RunFolder& folder, const NewRun& how) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path()))
    if (const std::string name = entry.path().filename().string(); is_of_a_run(name) || is_one_of(name, how.own_names))
      files.push_back(name);
  std::sort(files.begin(), files.end());
  auto result = std::find(files.begin(), files.end(), RunFolder::kLastCheckpoint);  // not its predecessor
  if (result == files.end()) result = std::find_if(files.begin(), files.end(), is_result);
  WEFT_CHECK(how.overwrite || result == files.end(), "run folder: expected a new folder, got ", folder.path().string(),
             " with ", *result, " of another run. ", how.flags, ", --overwrite replaces it");
  for (const std::string& name : files) fs::remove_all(folder.file(name));
}

}  // namespace

RunFolder::RunFolder(fs::path path, const RunLockOptions& lock) : path_(std::move(path)) {
  std::error_code error;
  WEFT_CHECK(!path_.empty(), "run folder: expected a path, got an empty one");
  const bool exists = fs::exists(path_, error);
  WEFT_CHECK(!exists || fs::is_directory(path_, error), "run folder: expected a folder, got the file ", path_.string());
  fs::create_directories(path_, error);
  WEFT_CHECK(!error && fs::is_directory(path_), "run folder: expected to create ", path_.string(), ", got '",
             error.message(), "'. Name another folder");
  // Trying is the only sure answer: permission bits say nothing of read-only mounts, quotas or a full disk.
  try {
    const fs::path probe = path_ / str(".write_probe.", ::getpid());
    write_atomically(probe, "weft", "run folder");
    fs::remove(probe, error);
  } catch (const Error& reason) {
    fail("run folder: expected a folder that can be written, got ", path_.string(), " (", reason.what(), ")");
  }
  lock_ = RunLock::hold(path_, lock);
}

void RunFolder::save(const std::string& name, const Checkpoint& checkpoint, int keep) const {
  confirm();
  save_checkpoint(file(name), checkpoint, keep);
  std::error_code next_time;
  fs::remove_all(file(name).replace_extension(), next_time);  // --fsdp-checkpoints sharded made it
}

void RunFolder::write_config(std::string_view toml) const { write_atomically(file("config.toml"), toml, "config"); }

void RunFolder::write_summary(const Summary& summary) const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : summary)
    std::visit([&json, &key = key](const auto& v) { json[key] = v; }, value);  // as clang below 16 wants it
  write_atomically(file("summary.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                   "summary");
}

void RunFolder::remove_summary() const {
  std::error_code there_is_none;
  fs::remove(file("summary.json"), there_is_none);
}

std::string on_first(const dist::World& ranks, const std::string& what, const std::function<std::string()>& function) {
  std::string result, problem;
  try {
    if (ranks.is_first()) result = function();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  problem = ranks.first_says(problem, what);
  WEFT_CHECK(problem.empty(), problem);
  return ranks.first_says(result, what);
}

std::unique_ptr<RunFolder> open_run_folder(const fs::path& path, const dist::World& ranks,
                                           const std::optional<NewRun>& fresh) {
  std::unique_ptr<RunFolder> folder;
  on_first(ranks, "run folder", [&] {
    folder = std::make_unique<RunFolder>(path);
    if (fresh) begin_new_run(*folder, *fresh);
    return "";
  });
  return folder;
}

}  // namespace weft::train
