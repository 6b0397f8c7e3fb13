// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <sstream>

#include "apps/weft_sweep/options.h"
#include "apps/weft_sweep/sweep.h"
#include "core/text.h"
#include "train/exit.h"
#include "train/shell_word.h"

namespace weft::weft_sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBody = R"(
%PROGRAM% --out %OUT% --point "$SLURM_ARRAY_TASK_ID" &
task=$!
trap 'kill -TERM "$task"' TERM
trap 'kill -USR1 "$task"' USR1
# A signal ends `wait` early: wait again until the task itself has ended.
wait "$task"; status=$?
while kill -0 "$task" 2>/dev/null; do wait "$task"; status=$?; done
# Slurm ends this script after a requeue; a script that ends by itself first may end the task instead.
if [ "$status" -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID" && sleep 60; fi
exit "$status"
)";

std::string own_path() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? "weft-sweep" : path.string();
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  text.replace(at, from.size(), to);
}

}  // namespace

namespace {

/// As a value in a `#SBATCH` line, where Slurm reads quotes and backslashes. Errors: characters that end the line, and
/// those that no quoting protects: a line break would begin a command of the script.
std::string slurm_word(const std::string& what, const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw train::UsageError(what +
                              ": expected a path without control characters, which a batch script cannot name, got '" +
                              printable(text) + "'");
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string slurm_script(const Sweep& sweep, const Options& options) {
  const std::string folder = fs::absolute(sweep.folder).lexically_normal().string();
  std::ostringstream out;
  out << "#!/bin/bash\n"
      << "# Written by weft-sweep: one task per point of " << printable(folder) << "/sweep.json.\n"
      << "#SBATCH --job-name=weft-sweep\n"
      << "#SBATCH --array=0-" << sweep.size() - 1 << '%' << options.jobs << '\n'
      << "#SBATCH --chdir=" << slurm_word("the working folder", fs::current_path().string()) << '\n'
      << "#SBATCH --output=" << slurm_word("--out", folder + "/slurm-%A_%a.log") << " --open-mode=append --requeue\n";
  std::istringstream words(options.sbatch);
  for (std::string word; words >> word;) {
    if (!word.starts_with("-"))
      throw train::UsageError("--sbatch: expected flags such as --time=60, got '" + printable(word) + "'");
    out << "#SBATCH " << word << '\n';
  }
  std::string body = kBody;
  replace(body, "%PROGRAM%", train::shell_word(own_path()));
  replace(body, "%OUT%", train::shell_word(folder));
  return out.str() + body;
}

}  // namespace weft::weft_sweep
