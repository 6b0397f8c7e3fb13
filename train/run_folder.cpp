// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dist/group/world.h"
#include "io/atomic_file.h"
#include "kernels/error.h"

namespace weft::train {

namespace fs = std::filesystem;

namespace {

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_of_a_run(const std::string& name) {
  return is_one_of(name, {"config.toml", "config.yaml", "metrics.jsonl", "summary.json"}) ||
         name.starts_with("events.out.tfevents.") || name.starts_with("checkpoint_") || name.starts_with("checkpoint-");
}

/// Hours of work, as opposed to what a run writes when it begins.
bool is_result(const std::string& name) {
  return name == "summary.json" || name.starts_with("checkpoint") || name.ends_with(".safetensors");
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

bool RunFolder::has_last_checkpoint() const { return !find_checkpoint(last_checkpoint()).empty(); }

void RunFolder::save(const std::string& name, const Checkpoint& checkpoint, int keep) const {
  confirm();
  save_checkpoint(file(name), checkpoint, keep);
  std::error_code next_time;
  fs::remove(file(name).replace_extension(".h5"), next_time);
}

void RunFolder::write_config(std::string_view toml) const { write_atomically(file("config.toml"), toml, "config"); }

void RunFolder::write_summary(const Summary& summary) const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : summary) std::visit([&](const auto& v) { json[key] = v; }, value);
  write_atomically(file("summary.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                   "summary");
}

void RunFolder::remove_summary() const {
  std::error_code there_is_none;
  fs::remove(file("summary.json"), there_is_none);
}

void begin_new_run(const RunFolder& folder, const NewRun& how) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path()))
    if (const std::string name = entry.path().filename().string(); is_of_a_run(name) || is_one_of(name, how.own_names))
      files.push_back(name);
  std::sort(files.begin(), files.end());
  auto result = std::find(files.begin(), files.end(), RunFolder::kLastCheckpoint);  // not the one before it
  if (result == files.end()) result = std::find_if(files.begin(), files.end(), is_result);
  WEFT_CHECK(how.overwrite || result == files.end(), "run folder: expected a new folder, got ", folder.path().string(),
             " with ", *result, " of another run. ", how.flags, ", --overwrite replaces it");
  for (const std::string& name : files) fs::remove_all(folder.file(name));
}

std::unique_ptr<RunFolder> open_run_folder(const fs::path& path, const dist::World& ranks,
                                           const std::optional<NewRun>& fresh) {
  std::unique_ptr<RunFolder> folder;
  std::string problem;
  try {
    if (ranks.is_first()) folder = std::make_unique<RunFolder>(path);
    if (folder && fresh) begin_new_run(*folder, *fresh);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  problem = ranks.first_says(problem, "run folder");
  WEFT_CHECK(problem.empty(), problem);
  return folder;
}

}  // namespace weft::train
