// SPDX-License-Identifier: Apache-2.0
#include "train/resume.h"

#include <algorithm>
#include <iostream>
#include <sstream>

#include "core/random.h"
#include "core/text.h"
#include "dist/group/same_lines.h"
#include "io/checkpoint_reader.h"
#include "io/crc32c.h"
#include "train/record/run_folder.h"

namespace weft::train {

std::string whole_checkpoint(const std::filesystem::path& last, const dist::World& ranks) {
  return on_first(ranks, "checkpoint to resume", [&] {
    std::string note, path = find_whole_checkpoint(last, note).string();
    if (!note.empty()) std::cerr << "warning: " + printable(note) + "\n" << std::flush;
    return path;
  });
}

std::string checkpoint_to_resume(const std::string& wanted, const std::filesystem::path& folder,
                                 const dist::World& ranks) {
  if (wanted == "auto") {
    const std::string path = whole_checkpoint(folder / RunFolder::kLastCheckpoint, ranks);
    if (!path.empty()) return path;
    return on_first(ranks, "checkpoint to resume", [&] {  // the disk may have been full, or a file was removed
      const std::string best = find_checkpoint(folder / RunFolder::kBestCheckpoint).string();
      if (!best.empty())
        std::cerr << "warning: there is no " << RunFolder::kLastCheckpoint << " in " << printable(folder.string())
                  << ": going on from " << RunFolder::kBestCheckpoint << '\n';
      return best;
    });
  }
  const std::filesystem::path last = std::filesystem::path(wanted) / RunFolder::kLastCheckpoint;
  std::error_code none;
  const bool is_run = std::filesystem::is_directory(wanted, none) && !find_checkpoint(last).empty();
  return is_run ? whole_checkpoint(last, ranks) : wanted;
}

namespace {

bool lists(const std::string& names, const std::string& name) {
  return (' ' + names + ' ').find(' ' + name + ' ') != std::string::npos;
}

/// `name = value` or `name: value` on each line.
std::map<std::string, std::string> settings_of(const std::string& toml) {
  std::map<std::string, std::string> settings;
  std::istringstream in(toml);
  for (std::string line; std::getline(in, line);)
    if (const size_t sign = std::min(line.find(" = "), line.find(": ")); sign != std::string::npos && line[0] != '#')
      settings[line.substr(0, sign)] = line.substr(sign + (line[sign] == ':' ? 2 : 3));
  return settings;
}

}  // namespace

std::string setting_of(const std::string& toml, const std::string& name) {
  const std::map<std::string, std::string> settings = settings_of(toml);
  const auto found = settings.find(name);
  if (found == settings.end()) return "";
  const std::string& value = found->second;
  return value.size() > 1 && value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
}

ChangedSettings changed_settings(const std::string& saved, const std::string& now, const std::string& ignored) {
  const std::map<std::string, std::string> before = settings_of(saved);
  ChangedSettings changes;
  for (const auto& [name, value] : settings_of(now)) {
    const auto old = before.find(name);
    if (old == before.end() || old->second == value || lists(ignored, name)) continue;
    changes[name] = printable(old->second, 200) + " -> " + printable(value, 200);
  }
  return changes;
}

void require_same_settings(const dist::World& ranks, const std::string& settings, const std::string& own) {
  std::string lines;
  for (const auto& [name, value] : settings_of(settings))
    if (!lists(own, name)) lines += name + " = " + value + '\n';
  dist::check_same_lines(*ranks.group(), lines, "settings: the flags are", "Start all ranks with the same flags");
}

void require_same_images(const dist::World& ranks, const data::Dataset* train, const data::Dataset* val,
                         const data::Dataset* test) {
  std::string lines, classes;
  for (const auto& [set, purpose] : {std::pair{train, "training"}, {val, "validation"}, {test, "the test"}}) {
    if (!set) continue;
    lines += str(set->size(), " images for ", purpose, '\n');
    classes.clear();  // equal in all of them
    for (const std::string& name : set->classes()) classes += "class " + name + '\n';
  }
  dist::check_same_lines(*ranks.group(), lines + classes, "data: the set is", "All ranks must read the same images");
}

void require_same_checkpoint(const dist::World& ranks, const std::string& path, const Checkpoint& saved) {
  if (ranks.size() == 1) return;
  std::string lines;
  for (const auto& [name, value] : saved.integers) lines += str(name, " = ", value, '\n');
  for (const auto& [part, state] : saved.parts)
    for (const NamedTensor& entry : state.tensors) {
      const Tensor dense = entry.tensor.contiguous();
      lines += str(part, '/', entry.name, " with the checksum ", crc32c(dense.raw_data(), dense.nbytes()), '\n');
    }
  dist::check_same_lines(*ranks.group(), lines, str("checkpoint ", path, ": what was read is"),
                         "It must be one file, in a folder that all ranks share");
}

Checkpoint read_notes(const std::string& path, const dist::World& ranks) {
  on_first(ranks, "checkpoint", [&] { return CheckpointReader(path).where(); });
  const CheckpointReader reader(path, CheckpointReader::Seal::later);
  const CheckpointIndex& index = reader.index();
  dist::check_same_lines(*ranks.group(), "the checkpoint " + index.id + '\n',
                         str("checkpoint ", path, ": what was read is"),
                         "It must be one checkpoint, in a folder that all ranks share");
  return {{}, index.integers, index.numbers, index.texts};
}

std::string text_of(const ChangedSettings& changes) {
  std::string text;
  for (const auto& [name, change] : changes) text += (text.empty() ? "" : ", ") + name + ' ' + change;
  return text;
}

std::string note_of(const ChangedSettings& changes) {
  return changes.empty() ? "" : "with other settings than the checkpoint: " + text_of(changes);
}

bool has_best_of(const RunFolder* folder, int64_t best_epoch, const dist::World& ranks) {
  bool has = false;
  try {
    const std::filesystem::path best = folder == nullptr ? "" : find_checkpoint(folder->best_checkpoint());
    has = !best.empty() && load_checkpoint(best).integer("best_epoch") == best_epoch;
  } catch (const Error&) {  // damaged, or of another program
  }
  return ranks.first_says(has ? "yes" : "no", "best checkpoint") == "yes";
}

bool goes_on_in(const std::filesystem::path& folder, const std::string& wanted) {
  std::error_code none;
  if (wanted == "auto" || wanted.empty()) return wanted == "auto";
  return std::filesystem::equivalent(wanted, folder, none) ||
         std::filesystem::equivalent(std::filesystem::absolute(wanted).parent_path(), folder, none);
}

void require_same_step(const std::string& path, const Checkpoint& saved, StepSize step) {
  const int64_t batch = saved.integer("batch_size"), others = step.ranks * step.accumulate, all = step.all();
  const std::string times = step.accumulate > 1 ? str(", ", step.accumulate, " times") : "";
  if (others == 1)
    WEFT_CHECK(batch == all, "checkpoint ", path, " was made with --batch-size ", batch, ", this run has ", all);
  WEFT_CHECK(batch == all, "checkpoint ", path, " was made with ", batch, " images per step, this run has ", all, " (",
             step.ranks, step.ranks == 1 ? " rank of " : " ranks of ", step.batch_size, times, ")",
             batch % others == 0 ? str(". Use --batch-size ", batch / others) : "");
}

void save_generator(Checkpoint& checkpoint, Device device) {
  const RandomGenerator& random = generator(device);
  checkpoint.integers["generator_seed"] = static_cast<int64_t>(random.seed);
  checkpoint.integers["generator_offset"] = static_cast<int64_t>(random.offset);
}

void load_generator(const Checkpoint& saved, const dist::World& ranks) {
  generator(ranks.device()) = {static_cast<uint64_t>(saved.integer("generator_seed")),
                               static_cast<uint64_t>(saved.integer("generator_offset"))};
}

}  // namespace weft::train
