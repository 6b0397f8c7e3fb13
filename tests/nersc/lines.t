# What a run of NERSC's workflow prints, and the checkpoints that it leaves.

needs: yaml zip

  $ cp "$WEFT"/tests/nersc/small.yaml .; train() { train_single_gpu --device cpu --yaml_config=small.yaml "$@"; }

A dry run says what would happen, and writes nothing.

  $ train --dry-run
  config  small.yaml, default
  model   cnn, 38145 parameters
  data    8 random samples [1,12,12] -> [1,12,12]; 2 steps of 4 samples on each of 1 rank an epoch
  …
  run     ./outputs/default/0: epochs 1 to 3
  …
  $ ls
  small.yaml

Each epoch has its two lines. Only train_multi_gpu says its rank.

  $ train --config=default --run_num=a
  Starting training loop...
  Time taken for epoch 1 is [0-9.]+(e-?[0-9]+)? sec; with [0-9.]+(e-?[0-9]+)?/[0-9.]+(e-?[0-9]+)? in tr/val (re)
  Loss = [0-9.]+(e-?[0-9]+)?, Val loss = [0-9.]+(e-?[0-9]+)? (re)
  Time taken for epoch 2 is … sec; with …/… in tr/val
  Loss = …, Val loss = …
  Time taken for epoch 3 is … sec; with …/… in tr/val
  Loss = …, Val loss = …
  Training complete
  $ train --run_num=a --dry-run | grep '^run'
  run     ./outputs/default/a: nothing: all 3 epochs are done

The checkpoint has the names of the workflow. Epochs count from 0, and there are two steps in each.

  $ ls outputs/default/a/checkpoints
  ckpt.1.tar
  ckpt.tar
  ckpt_best.tar
  $ torch_file outputs/default/a/checkpoints/ckpt.tar > last; jq -c '[keys_unsorted, .iters, .epoch, .scheduler_state_dict.last_epoch][]' last
  ["iters","epoch","model_state","optimizer_state_dict","scheduler_state_dict","best_val_loss","best_epoch","settings"]
  6
  2
  3
  $ jq -r '.model_state | keys_unsorted[]' last
  conv_in.0.weight
  conv_in.0.bias
  conv_hidden.0.0.weight
  conv_hidden.0.0.bias
  conv_out.0.weight
  conv_out.0.bias

CosineAnnealingLR with T_max = 3 leaves a quarter of the learning rate after two epochs: (1 + cos(2 pi / 3)) / 2.

  $ train --config=cosine > out; torch_file outputs/cosine/0/checkpoints/ckpt.tar > last
  $ jq -c '.optimizer_state_dict.param_groups[0] | [(.lr - 0.25e-3 | fabs) < 1e-12, .initial_lr]' last
  [true,0.001]

With the workflow's own steps the losses at epoch 25 are PyTorch's, which eight seeds end at 0.0834 to 0.0860. 1/12, the variance of the targets, is the
least loss, and the first epoch is far from it.

  $ train --config=reference > out; grep '^Loss = ' out | numbers > losses; wc -l < losses
  50
  $ head -n 1 losses | jq '. > 0.1'
  true
  $ near 0.0015 <(tail -n 2 losses) <(printf '0.0847\n0.0847\n')

The shipped configurations are the workflow's.

  $ cd "$WEFT"/apps/nersc; dry() { train_single_gpu --device cpu --dry-run --root_dir /nowhere "$@"; }
  $ dry
  config  ./configs/default.yaml, default
  model   cnn, 112001 parameters
  data    128 random samples [1,128,128] -> [1,128,128]; 4 steps of 32 samples …
  with    adam, lr 0.001, schedule cosine
  run     /nowhere/default/0: epochs 1 to 25
  device  cpu …
  dry run: would train this; nothing is written
  $ dry --config=test --run_num=x | grep data
  data    … 8 steps of 16 samples …
  $ dry --yaml_config=configs/wandb.yaml --config test | grep data
  data    … 4 steps of 32 samples …
  $ dry --yaml_config=configs/wandb.yaml --config test2 | grep -E 'data|with|run  '
  data    … 8 steps of 16 samples …
  with    …, schedule none
  run     /nowhere/expts/test2/0: epochs 1 to 50
  $ dry --sweep_id s1 --run_num b --lr 5e-5 --batch_size 16 | grep -E 'with|run  '
  with    adam, lr 5e-05, schedule cosine
  run     /nowhere/sweeps/s1/b: epochs 1 to 25
