// SPDX-License-Identifier: Apache-2.0
#include "dist/group/process_group.h"

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "dist/group/backends.h"
#include "dist/group/group_record.h"

namespace weft::dist {
namespace {

Collective made(CollectiveKind kind, const CollectiveOptions& options, const Tensor& output, const Tensor& input = {},
                int peer = -1) {
  return {.kind = kind,
          .name = options.name,
          .output = output,
          .input = input,
          .scale = options.scale,
          .at_once = options.at_once,
          .after = options.after,
          .peer = peer};
}

/// `all_reduce 'fc.bias' on rank 1`: how errors about arguments begin.
std::string called(const Collective& c, int rank) {
  return str(name(c.kind), c.name.empty() ? "" : " '" + c.name + "'", " on rank ", rank);
}

void check_tensor(const Collective& c, const Tensor& tensor, const char* which, int rank) {
  WEFT_CHECK(tensor.defined(), called(c, rank), ": expected a tensor as ", which, ", got none");
  WEFT_CHECK(tensor.is_contiguous(), called(c, rank), ": expected a contiguous ", which, ", got ", tensor,
             " with other strides. Call contiguous()");
  WEFT_CHECK(tensor.dtype() != DType::boolean, called(c, rank), ": cannot send bool, got ", tensor, ". Convert to u8");
}

void check_scale(const Collective& c, int rank) {
  const Tensor& tensor = c.tensor();
  WEFT_CHECK(c.op != ReduceOp::avg || tensor.is_floating(), called(c, rank), ": avg: expected a floating tensor, got ",
             tensor, ". Use sum");
  if (!c.scale.defined()) return;
  WEFT_CHECK(c.kind == CollectiveKind::all_reduce || c.kind == CollectiveKind::reduce_scatter, called(c, rank),
             ": scale belongs to all_reduce and reduce_scatter");
  WEFT_CHECK(c.op == ReduceOp::sum, called(c, rank), ": scale goes with sum, got ", name(c.op));
  WEFT_CHECK(tensor.is_floating(), called(c, rank), ": scale: expected a floating tensor, got ", tensor);
  const bool is_double = tensor.dtype() == DType::f64;
  const bool fits = c.scale.dtype() == DType::f32 || (is_double && c.scale.dtype() == DType::f64);
  WEFT_CHECK(fits && c.scale.numel() == 1 && c.scale.device() == tensor.device(), called(c, rank),
             ": scale: expected f32[1]", is_double ? " or f64[1]" : "", " on ", tensor.device(), ", got ", c.scale);
}

/// `large` holds one part per rank, each as large as `small`.
void check_parts(const Collective& c, const Tensor& large, const Tensor& small, int rank, int size) {
  check_tensor(c, c.output, "output", rank);
  check_tensor(c, c.input, "input", rank);
  const char* const names[] = {"output", "input"};
  const bool gather = c.kind == CollectiveKind::all_gather;
  WEFT_CHECK(large.numel() == size * small.numel(), called(c, rank), ": ", names[!gather], ' ', large, ": expected ",
             size, " times the elements of ", names[gather], ' ', small);
  WEFT_CHECK(large.dtype() == small.dtype() && large.device() == small.device(), called(c, rank), ": output ", c.output,
             " and input ", c.input, ": expected one dtype and one device");
}

}  // namespace

ProcessGroup::ProcessGroup(GroupRecordPtr record)
    : record_(std::move(record)),
      rank_(record_->rank),
      size_(record_->size),
      name_(record_->name),
      sent_(static_cast<size_t>(size_)),
      received_(static_cast<size_t>(size_)) {}

WorkPtr ProcessGroup::submit(Collective c) {
  switch (c.kind) {
    case CollectiveKind::send:
      c.number = ++sent_[static_cast<size_t>(c.peer)];
      break;
    case CollectiveKind::receive:
      c.number = ++received_[static_cast<size_t>(c.peer)];
      break;
    default:
      c.number = next_number();
  }
  record_->check_alive(c);
  if (c.after && backend() != "nccl") std::exchange(c.after, nullptr)->wait();
  c.entry = record_->log.add(describe(c));
  return enqueue(std::make_shared<const Collective>(std::move(c)));
}

WorkPtr ProcessGroup::all_reduce(const Tensor& tensor, ReduceOp op, const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::all_reduce, options, tensor);
  c.op = op;
  check_tensor(c, tensor, "tensor", rank_);
  check_scale(c, rank_);
  return submit(std::move(c));
}

WorkPtr ProcessGroup::broadcast(const Tensor& tensor, int root, const CollectiveOptions& options) {
  const Collective c = made(CollectiveKind::broadcast, options, tensor, {}, root);
  check_tensor(c, tensor, "tensor", rank_);
  check_scale(c, rank_);
  WEFT_CHECK(root >= 0 && root < size_, called(c, rank_), ": root: expected 0 to ", size_ - 1, ", got ", root);
  return submit(c);
}

WorkPtr ProcessGroup::all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
  const Collective c = made(CollectiveKind::all_gather, options, output, input);
  check_parts(c, output, input, rank_, size_);
  check_scale(c, rank_);
  return submit(c);
}

WorkPtr ProcessGroup::reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op,
                                     const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::reduce_scatter, options, output, input);
  c.op = op;
  check_parts(c, input, output, rank_, size_);
  check_scale(c, rank_);
  return submit(std::move(c));
}

void ProcessGroup::barrier(const std::string& what) {
  submit({.kind = CollectiveKind::barrier, .name = what, .at_once = true})->wait();
}

WorkPtr ProcessGroup::send(const Tensor& tensor, int to, const CollectiveOptions& options) {
  return submit_message(made(CollectiveKind::send, options, tensor, {}, to));
}

WorkPtr ProcessGroup::receive(const Tensor& tensor, int from, const CollectiveOptions& options) {
  return submit_message(made(CollectiveKind::receive, options, tensor, {}, from));
}

WorkPtr ProcessGroup::submit_message(const Collective& c) {
  check_tensor(c, c.output, "tensor", rank_);
  check_scale(c, rank_);
  WEFT_CHECK(c.peer >= 0 && c.peer < size_ && c.peer != rank_, called(c, rank_), ": expected another rank of 0 to ",
             size_ - 1, ", got ", c.peer);
  return submit(c);
}

std::vector<std::string> ProcessGroup::all_gather_text(const std::string& text, const std::string& what) {
  const Device device = text_device();
  const Tensor lengths = Tensor::empty({size_}, DType::i64, device);
  WorkPtr work = all_gather(lengths, Tensor::from<int64_t>({static_cast<int64_t>(text.size())}, device),
                            {.name = what + " (lengths)", .scale = {}, .at_once = true});
  work->wait();
  const std::vector<int64_t> length = lengths.to_vector<int64_t>();
  work->wait();  // on a GPU it has come to an end only now, a bad one perhaps
  const int64_t longest = *std::ranges::max_element(length);

  std::vector<uint8_t> padded(text.begin(), text.end());
  padded.resize(static_cast<size_t>(longest));
  const Tensor texts = Tensor::empty({size_, longest}, DType::u8, device);
  work = all_gather(texts, Tensor::from(padded, device), {.name = what, .scale = {}, .at_once = true});
  work->wait();
  const std::vector<uint8_t> bytes = texts.to_vector<uint8_t>();
  work->wait();

  std::vector<std::string> result;
  for (int r = 0; r < size_; ++r) {
    const auto begin = bytes.begin() + r * longest;
    result.emplace_back(begin, begin + length[static_cast<size_t>(r)]);
  }
  return result;
}

std::vector<int> ProcessGroup::members_of_split(int color, int key, const std::string& name) {
  const std::vector<std::string> texts = all_gather_text(str(color, ' ', key), "split " + name);
  std::vector<std::tuple<int, int>> chosen;  // key, rank
  for (int r = 0; r < size_; ++r) {
    std::istringstream text(texts[static_cast<size_t>(r)]);
    int its_color = -1, its_key = 0;
    text >> its_color >> its_key;
    if (color >= 0 && its_color == color) chosen.emplace_back(its_key, r);
  }
  std::ranges::sort(chosen);
  std::vector<int> members;
  for (const auto& [its_key, rank] : chosen) members.push_back(rank);
  return members;
}

uint64_t ProcessGroup::bytes_sent() const { return record_->bytes_sent; }
std::string ProcessGroup::flight_log() const { return record_->log.text(); }

ProcessGroupPtr make_process_group(const std::string& backend, int rank, int size, std::shared_ptr<Store> store,
                                   std::shared_ptr<Membership> membership, const GroupOptions& options) {
  WEFT_CHECK(size > 0 && rank >= 0 && rank < size, "process group: rank ", rank, " of ", size, " ranks cannot be");
  WEFT_CHECK(backend != "threads", "process group: the ranks of backend threads are made by run_ranks()");
  WEFT_CHECK(backend == "gloo" || backend == "mpi" || backend == "nccl",
             "process group: backend: expected gloo, mpi or nccl, got '", backend, "'");
  auto record = std::make_shared<GroupRecord>("world", rank, size, options, std::move(membership));
  if (backend == "gloo") return make_gloo_group(std::move(record), std::move(store));
  if (backend == "mpi") return make_mpi_group(std::move(record), std::move(store));
  return make_nccl_group(std::move(record), std::move(store));
}

Grid::Grid(ProcessGroupPtr world, int model, int stages) : world_(std::move(world)) {
  WEFT_CHECK(world_, "grid: expected a group, got none");
  const std::string ranks = str(world_->size(), world_->size() == 1 ? " rank" : " ranks");
  WEFT_CHECK(stages > 0 && world_->size() % stages == 0, "grid: ", stages, " stages do not divide ", ranks);
  const int of_stage = world_->size() / stages;
  WEFT_CHECK(model > 0 && of_stage % model == 0, "grid: ", model, " model ranks do not divide ",
             stages == 1 ? ranks : str(of_stage, " ranks of each stage"));
  const int rank = world_->rank(), stage = rank / of_stage;
  model_ = world_->split(rank / model, rank, "model");
  data_ = world_->split(stage * model + rank % model, rank, "data");
  pipe_ = stages == 1 ? make_process_group_alone() : world_->split(rank % of_stage, rank, "pipe");
}

Grid::Grid(ProcessGroupPtr world, ProcessGroupPtr model, ProcessGroupPtr data, ProcessGroupPtr pipe)
    : world_(std::move(world)),
      model_(std::move(model)),
      data_(std::move(data)),
      pipe_(pipe ? std::move(pipe) : make_process_group_alone()) {}

namespace {

/// It is done when it is enqueued: on a GPU, on the caller's own stream.
class DoneWork final : public Work {
 public:
  void wait() override {}
  bool done() override { return true; }
};

class AloneGroup final : public ProcessGroup {
 public:
  explicit AloneGroup(const std::string& name)
      : ProcessGroup(std::make_shared<GroupRecord>(name, 0, 1, GroupOptions{})) {}

  std::string_view backend() const override { return "alone"; }
  ProcessGroupPtr split(int color, int, const std::string& name) override {
    return color < 0 ? nullptr : std::make_shared<AloneGroup>(name);
  }
  void abort(const std::string& reason) override { record_->fail(reason, GroupRecord::Cause::abort); }

 protected:
  WorkPtr enqueue(CollectivePtr c) override {
    const NoGrad guard;
    record_->begin(c);
    if (c->input.defined() && c->input.raw_data() != c->output.raw_data())
      c->output.copy_(c->input.reshape(c->output.sizes()));
    if (c->scale.defined()) c->output.copy_(mul(c->output, c->scale.reshape({})));
    record_->finish(*c, true);
    return std::make_shared<DoneWork>();
  }
};

}  // namespace

ProcessGroupPtr make_process_group_alone() { return std::make_shared<AloneGroup>("world"); }

}  // namespace weft::dist
