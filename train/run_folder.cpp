// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "dist/group/world.h"
#include "io/atomic_file.h"
#include "kernels/error.h"

namespace weft::train {

namespace fs = std::filesystem;

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

std::unique_ptr<RunFolder> open_run_folder(const fs::path& path, const dist::World& ranks) {
  std::unique_ptr<RunFolder> folder;
  std::string problem;
  try {
    if (ranks.is_first()) folder = std::make_unique<RunFolder>(path);
  } catch (const Error& error) {
    problem = error.what();
  }
  problem = ranks.first_says(problem, "run folder");
  WEFT_CHECK(problem.empty(), problem);
  return folder;
}

}  // namespace weft::train
