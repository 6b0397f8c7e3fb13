// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "core/ops/layers/recurrent.h"
#include "nn/module.h"

namespace weft::nn {

struct RecurrentOptions {
  int64_t layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< sequences [B, T, …], else [T, B, …]
  double dropout = 0;        ///< on the outputs of each layer but the last, in training
  bool bidirectional = false;
};

/// How many steps each sequence of a batch has, of 1 to T; PyTorch's packed sequences.
class Lengths {
 public:
  /// Errors: none, or one below 1.
  explicit Lengths(std::vector<int64_t> steps);

  struct Segment {
    int64_t begin, end;  ///< steps
    int64_t count;       ///< the first sequences in the order, which have all of these steps
  };
  const std::vector<int64_t>& steps() const { return steps_; }
  /// The sequences from the longest on, i64 [B].
  const std::vector<int64_t>& order() const { return order_; }
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  std::vector<int64_t> steps_, order_;
  std::vector<Segment> segments_;
};

/// The base of LSTM, GRU and RNN: `layers` recurrent layers one on the other, each once or in both directions, whose
/// outputs stand side by side. Names and order of the parameters are PyTorch's: weight_ih_l0, weight_hh_l0, bias_ih_l0,
/// bias_hh_l0, then weight_ih_l0_reverse …; they begin uniform in ± 1 / sqrt(hidden).
class Recurrent : public Module {
 public:
  /// y [T, B, directions hidden] of x [T, B, in] (or [B, T, …]), from states of zeros.
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;

  int64_t in() const { return in_; }
  int64_t hidden() const { return hidden_; }
  int directions() const { return options_.bidirectional ? 2 : 1; }
  const RecurrentOptions& options() const { return options_; }

 protected:
  /// States [layers directions, B, hidden], by layer, then direction.
  struct Output {
    Tensor y, h, c;
  };
  /// A layer's direction over x [T, B, …]: y, h, c.
  virtual Output run(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor& c,
                     Direction direction) const = 0;

  Recurrent(const char* name, int64_t in, int64_t hidden, int64_t gates, RecurrentOptions options);
  /// A call of the module that keeps the states. Undefined states are zeros. `lengths`: null for T steps of each
  /// sequence.
  Output call(const Tensor& x, const Tensor& h, const Tensor& c, const Lengths* lengths = nullptr) const;

 private:
  Output run_all(const Tensor& x, const Tensor& h, const Tensor& c, const Lengths* lengths) const;
  /// run() of sequences in the order of `lengths`, called for each segment with the states after the one before.
  Output run_segments(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor& c,
                      Direction direction, const Lengths& lengths) const;

  const char* name_;
  int64_t in_, hidden_;
  RecurrentOptions options_;
  std::vector<RecurrentWeights> weights_;  // ordered by layer, then direction
};

struct LstmOutput {
  Tensor y;     ///< [T, B, directions hidden], or [B, T, …]
  Tensor h, c;  ///< after the last step: [layers directions, B, hidden]
};

/// Long short-term memory: lstm().
class LSTM : public Recurrent {
 public:
  LSTM(Integer in, Integer hidden, RecurrentOptions options = {}) : Recurrent("LSTM", in, hidden, 4, options) {}
  using Recurrent::operator();
  /// From given states [layers directions, B, hidden], with the last ones.
  LstmOutput operator()(const Tensor& x, const Tensor& h, const Tensor& c) const;
  /// For sequences of several lengths. y is 0 after the last step of each, to which h and c belong.
  LstmOutput operator()(const Tensor& x, const Lengths& lengths, const Tensor& h = {}, const Tensor& c = {}) const;

 private:
  Output run(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor& c,
             Direction direction) const override;
};

struct GruOutput {
  Tensor y;  ///< [T, B, directions hidden], or [B, T, …]
  Tensor h;  ///< after the last step: [layers directions, B, hidden]
};

/// Gated recurrent units: gru().
class GRU : public Recurrent {
 public:
  GRU(Integer in, Integer hidden, RecurrentOptions options = {}) : Recurrent("GRU", in, hidden, 3, options) {}
  using Recurrent::operator();
  /// From given states [layers directions, B, hidden], with the last ones.
  GruOutput operator()(const Tensor& x, const Tensor& h) const;
  /// As LSTM's.
  GruOutput operator()(const Tensor& x, const Lengths& lengths, const Tensor& h = {}) const;

 private:
  Output run(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor& c,
             Direction direction) const override;
};

struct RnnOptions : RecurrentOptions {
  bool relu = false;  ///< max(0, …), else tanh
};

/// h = tanh(W x + b + V h + c) at each step (Elman 1990), by ops.
class RNN : public Recurrent {
 public:
  RNN(Integer in, Integer hidden, RnnOptions options = {})
      : Recurrent("RNN", in, hidden, 1, options), relu_(options.relu) {}
  using Recurrent::operator();
  /// From given states [layers directions, B, hidden], with the last ones.
  GruOutput operator()(const Tensor& x, const Tensor& h) const;
  /// As LSTM's.
  GruOutput operator()(const Tensor& x, const Lengths& lengths, const Tensor& h = {}) const;

 private:
  Output run(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor& c,
             Direction direction) const override;
  bool relu_;
};

/// One step of a layer, x [B, in] and states [B, hidden]; an undefined state is zeros. Names of the parameters are
/// those of PyTorch's cells: weight_ih, weight_hh, bias_ih, bias_hh.
class RecurrentCell : public Module {
 public:
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;

 protected:
  RecurrentCell(const char* name, int64_t in, int64_t hidden, int64_t gates, bool bias);
  /// The state, or zeros. Errors: x or it of other sizes.
  Tensor checked(const Tensor& x, const Tensor& state) const;

 private:
  const char* name_;
};

/// The state of an LSTMCell, each [N, hidden].
struct LstmState {
  Tensor h, c;
};
/// One step of LSTM: cell(x, {h, c}) is the next {h, c}, an undefined state is zeros.
struct LSTMCell : RecurrentCell {
  LSTMCell(Integer in, Integer hidden, bool bias = true) : RecurrentCell("LSTMCell", in, hidden, 4, bias) {}
  Tensor forward(const Tensor& x) const override { return step(x, {}).h; }
  using Module::operator();
  LstmState operator()(const Tensor& x, const LstmState& state) const;

 private:
  LstmState step(const Tensor& x, const LstmState& state) const;
};

/// A cell whose state is h: cell(x, h) is the next one.
class OneStateCell : public RecurrentCell {
 public:
  Tensor forward(const Tensor& x) const override { return step(x, {}); }
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& h) const;

 protected:
  using RecurrentCell::RecurrentCell;
  virtual Tensor step(const Tensor& x, const Tensor& h) const = 0;
};

/// One step of GRU.
struct GRUCell : OneStateCell {
  GRUCell(Integer in, Integer hidden, bool bias = true) : OneStateCell("GRUCell", in, hidden, 3, bias) {}

 private:
  Tensor step(const Tensor& x, const Tensor& h) const override;
};

/// tanh(W x + b + V h + c).
struct RNNCell : OneStateCell {
  RNNCell(Integer in, Integer hidden, bool bias = true) : OneStateCell("RNNCell", in, hidden, 1, bias) {}

 private:
  Tensor step(const Tensor& x, const Tensor& h) const override;
};

}  // namespace weft::nn
