// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/checkpoint_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/autograd.h"
#include "io/atomic_file.h"
#include "io/checkpoint_index.h"
#include "io/file_reader.h"
#include "io/safetensors.h"
#include "kernels/runtime/runtime.h"
#include "kernels/runtime/transfer.h"

namespace weft::dist {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{20};
/// A folder that is untouched for so long counts as left by a crash.
constexpr std::chrono::minutes kAbandonedAfter{10};

fs::path note_path(const fs::path& folder, int rank) { return folder / str("rank_", rank, ".note"); }

std::string random_id() {
  std::random_device source;
  char text[20];
  std::snprintf(text, sizeof text, "%08x%08x", source(), source());
  return text;
}

void force_to_disk(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(::fsync(fd));  // some network file systems cannot; the rename itself has succeeded
  ::close(fd);
}

/// Renames the finished folder to its name. The last `keep` - 1 folders before it stay (kept_file()).
void publish(const fs::path& temporary, const fs::path& folder, int keep) {
  std::error_code ignored;
  if (keep > 1 && fs::exists(folder, ignored)) {
    fs::remove_all(kept_file(folder, keep - 1), ignored);
    for (int age = keep - 1; age > 0; --age) fs::rename(kept_file(folder, age - 1), kept_file(folder, age), ignored);
  }
  if (!fs::exists(folder, ignored)) {
    fs::rename(temporary, folder);
  } else if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(temporary, ignored);
  } else {  // the file system cannot exchange names: two steps
    const fs::path old = temporary.string() + ".old";
    fs::rename(folder, old);
    fs::rename(temporary, folder);
    fs::remove_all(old, ignored);
  }
  force_to_disk(folder.has_parent_path() ? folder.parent_path() : fs::path("."));
}

fs::path parent_of(const fs::path& folder) { return folder.has_parent_path() ? folder.parent_path() : fs::path("."); }

/// Removes what crashed saves of this folder left.
void remove_abandoned(const fs::path& folder) {
  const std::string start = "." + folder.filename().string() + ".";
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent_of(folder), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".tmp")) continue;
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
    if (!ignored && age > kAbandonedAfter) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

/// The thread's data of one save.
struct CheckpointWriter::Job {
  fs::path folder, temporary;
  int rank = 0, size = 0, keep = 1;
  Milliseconds timeout{};
  const std::atomic<bool>* gives_up = nullptr;  // the writer's
  CheckpointIndex index;  // rank 0: what it knows, without files; others: id, and parts of which they have the start
  StateDict tensors;                            // in the arena
  std::vector<CheckpointIndex::Piece> pieces;
  std::vector<Tensor> sources;  // stay until they have been copied
  std::unique_ptr<Event> copied;

  void run();
  void write_own();
  void finish();
  RankNote await_note(int of, Clock::time_point deadline) const;
};

void CheckpointWriter::Job::run() {
  if (copied) copied->synchronize();
  sources.clear();
  RankNote note;
  try {
    write_own();
    note.file = sums_of(temporary / CheckpointIndex::file_name(rank));
    note.file.pieces = pieces;
    note.parts = index.parts;
  } catch (const std::exception& error) {
    note.error = error.what();
  }
  if (rank != 0 || !note.error.empty())
    write_atomically(note_path(temporary, rank), note_text(note), "sharded checkpoint");
  if (!note.error.empty()) fail(note.error);
  if (rank != 0) return;
  index.files.push_back(note.file);
  finish();
}

void CheckpointWriter::Job::write_own() {
  write_safetensors(temporary / CheckpointIndex::file_name(rank), tensors,
                    {{"checkpoint", index.id}, {"rank", str(rank)}, {"world_size", str(size)}});
}

RankNote CheckpointWriter::Job::await_note(int of, Clock::time_point deadline) const {
  const fs::path path = note_path(temporary, of);
  std::error_code ignored;
  while (!fs::exists(path, ignored)) {
    WEFT_CHECK(!*gives_up, "sharded checkpoint ", folder.string(), ": rank ", of, "'s file was not waited for");
    WEFT_CHECK(Clock::now() < deadline, "sharded checkpoint ", folder.string(), ": rank ", of,
               "'s file did not appear within ", std::chrono::duration<double>(timeout).count(),
               " s. Do all ranks see the same file system?");
    std::this_thread::sleep_for(kPoll);
  }
  return read_note(read_text(path, "sharded checkpoint"));
}

void CheckpointWriter::Job::finish() {
  const Clock::time_point deadline = Clock::now() + timeout;
  std::unordered_set<std::string> listed;  // rank 0 lists its own tensors, others add those of their stages
  std::unordered_map<std::string, CheckpointIndex::Part*> parts;
  for (auto& [name, part] : index.parts) {
    parts[name] = &part;
    for (const CheckpointIndex::Entry& entry : part.tensors) listed.insert(name + '/' + entry.name);
  }
  for (int other = 1; other < size; ++other) {
    RankNote note = await_note(other, deadline);
    WEFT_CHECK(note.error.empty(), "rank ", other, " failed: ", note.error);
    index.files.push_back(std::move(note.file));
    for (const auto& [name, part] : note.parts)
      for (const CheckpointIndex::Entry& entry : part.tensors)
        if (listed.insert(name + '/' + entry.name).second) parts.at(name)->tensors.push_back(entry);
  }
  write_index(temporary, index);
  std::error_code ignored;
  for (int other = 1; other < size; ++other) fs::remove(note_path(temporary, other), ignored);
  publish(temporary, folder, keep);
}

CheckpointWriter::CheckpointWriter(ProcessGroupPtr group, Milliseconds timeout)
    : group_(std::move(group)), timeout_(timeout) {}

CheckpointWriter::~CheckpointWriter() {
  gives_up_ = std::uncaught_exceptions() > 0;
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::save(const fs::path& folder, std::vector<std::pair<std::string, ShardedState>> parts,
                            std::map<std::string, std::string> facts) {
  Checkpoint notes;
  notes.texts = std::move(facts);
  save(folder, std::move(parts), notes, /*keep=*/1);
}

void CheckpointWriter::save(const fs::path& folder, std::vector<std::pair<std::string, ShardedState>> parts,
                            const Checkpoint& notes, int keep, const std::function<void(const fs::path&)>& add) {
  wait();
  const NoGrad no_grad;
  auto job = std::make_shared<Job>();
  job->rank = group_->rank();
  job->size = group_->size();
  job->timeout = timeout_;
  job->gives_up = &gives_up_;
  job->folder = folder.has_filename() ? folder : folder.parent_path();
  std::error_code error;
  std::string problem;
  if (job->folder.empty() || !fs::is_directory(parent_of(job->folder), error))
    problem =
        str("expected an existing folder for ", folder.string(), ", got none at ", parent_of(job->folder).string());
  const std::vector<std::string> told =
      group_->all_gather_text(problem.empty() ? "+" + random_id() : problem, "checkpoint");
  for (size_t rank = 0; rank < told.size(); ++rank)
    WEFT_CHECK(told[rank].starts_with('+'), "sharded checkpoint: rank ", rank, ": ", told[rank]);
  job->index.id = told[0].substr(1);
  job->index.integers = notes.integers;
  job->index.numbers = notes.numbers;
  job->index.texts = notes.texts;
  job->keep = keep;
  job->temporary = parent_of(job->folder) / str('.', job->folder.filename().string(), '.', job->index.id, ".tmp");
  if (job->rank == 0) remove_abandoned(job->folder);
  fs::create_directories(job->temporary, error);
  temporary_ = job->temporary;
  if (add && job->rank == 0) add(job->temporary);

  Device device;
  size_t bytes = 0;
  for (const auto& [part, state] : parts)
    for (const TensorPiece& piece : state.pieces) {
      if (piece.values.device().kind != DeviceKind::cpu) device = piece.values.device();
      if (!piece.is_copy) bytes += (piece.values.nbytes() + 63) / 64 * 64;
    }
  if (arena_.kind() != device.kind) arena_ = kernels::PinnedMemory(device.kind);
  std::byte* const arena = arena_.at_least(bytes, "sharded checkpoint");
  size_t end = 0;
  for (auto& [part, state] : parts) {
    CheckpointIndex::Part& listed =
        job->index.parts.emplace_back(part, CheckpointIndex::Part{{}, state.scalars}).second;
    for (const TensorPiece& piece : state.pieces) {
      const bool has_start = !piece.is_copy && piece.of.place(piece.begin) == 0;
      if (job->rank == 0 || (has_start && (piece.values.numel() > 0 || piece.sizes.numel() == 0)))
        listed.tensors.push_back({piece.name, piece.values.dtype(), piece.sizes, piece.layout == nn::Layout::ohwi});
      if (piece.is_copy || piece.values.numel() == 0) continue;
      const Tensor copy = Tensor::wrap(arena + end, {piece.values.numel()}, piece.values.dtype(), Device{});
      end += (piece.values.nbytes() + 63) / 64 * 64;
      const Tensor source = piece.values.contiguous();
      const Device at = source.device().kind == DeviceKind::cpu ? source.device() : device;
      kernels::transfer(current_queue(at), "snapshot", copy.raw_data(), source.raw_data(), source.nbytes());
      job->sources.push_back(source);
      job->tensors.tensors.push_back({part + '/' + piece.name, copy});
      job->pieces.push_back({part, piece.name, piece.begin, piece.values.numel(), piece.of});
    }
  }
  if (device.kind == DeviceKind::cuda) {  // later work on this stream runs after the copies
    job->copied = std::make_unique<Event>(device);
    job->copied->record(current_stream(device));
  } else {
    synchronize(device);
  }
  pending_ = true;
  error_.clear();
  thread_ = std::thread([this, job] {
    try {
      job->run();
    } catch (const std::exception& failure) {
      error_ = failure.what();
    }
  });
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (!std::exchange(pending_, false)) return;
  const std::vector<std::string> errors = group_->all_gather_text(error_, "checkpoint written");
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank].empty()) continue;
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);  // no rank writes there any more
    fail("sharded checkpoint: rank ", rank, ": ", errors[rank]);
  }
}

}  // namespace weft::dist
