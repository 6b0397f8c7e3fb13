# NERSC's workflow on several ranks is the same training.

needs: yaml zip ranks

  $ cp "$WEFT"/tests/nersc/small.yaml .; train() { train_single_gpu --device cpu --yaml_config=small.yaml "$@"; }
  $ on() { local n=$1; shift; ranks "$n" train_multi_gpu --device cpu --yaml_config=small.yaml "$@"; }
  $ losses() { grep '^Loss = ' "$1" | numbers; }

Every rank says who it is and when it is done. The first one alone prints the epochs, with the losses of one process.

  $ train --run_num=one > one; on 2 --run_num=two > two; sort two | grep -v '^Loss'
  …
  Time taken for epoch 1 is …
  Time taken for epoch 2 is …
  Time taken for epoch 3 is …
  Training complete
  Training complete
  running on rank 0 with world size 2
  running on rank 1 with world size 2
  $ near 1e-6 <(losses two) <(losses one); losses one | wc -l
  6

The names of their checkpoint begin with `module.`, as DistributedDataParallel's do.

  $ torch_file outputs/default/two/checkpoints/ckpt.tar | jq -c '.model_state | length, all(keys[]; startswith("module."))'
  6
  true

Ranks need not divide a batch: of 13 samples, 5 at a time in training and 4 in validation.

  $ train --config=odd --run_num=1 > one; losses one | wc -l
  6
  $ for n in 2 3 4; do on $n --config=odd --run_num=$n > out && near 1e-6 <(losses out) <(losses one) || echo "$n ranks: $?"; done

A checkpoint of one process goes on with two ranks, and theirs with one process.

  $ train --config=longer --run_num=whole > whole
  $ train --config=first > out; losses out > parts; mv outputs/first outputs/third; on 2 --config=third > out; losses out >> parts
  $ grep -c 'Loading checkpoint' out
  2
  $ mkdir -p outputs/longer; mv outputs/third/0 outputs/longer/0; train --config=longer > out; losses out | wc -l
  4
  $ losses out >> parts; near 1e-5 parts <(losses whole); wc -l < parts
  10

Two ranks come to the reference's losses (lines.t), too.

  $ on 2 --config=reference > out; losses out | wc -l
  50
  $ losses out | sed -n 1p | jq '. > 0.1'
  true
  $ near 0.0015 <(losses out | tail -n 2) <(printf '0.0847\n0.0847\n')

Each rank needs a sample of each batch.

  $ on 2 --config=one_each
  …
  … batch_size: expected at least one sample for each of 2 ranks, got 1
  …
  [1]
