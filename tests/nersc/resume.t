# A run of NERSC's workflow that is resumed.

needs: yaml zip

  $ cp "$WEFT"/tests/nersc/small.yaml .; train() { train_single_gpu --device cpu --yaml_config=small.yaml "$@"; }
  $ losses() { grep '^Loss = ' "$1"; }

After three of five epochs it goes on to the same losses, bit for bit, and has nothing to do in the end.

  $ train --config=longer --run_num=whole > whole; losses whole | wc -l
  5
  $ train --config=third > out; mv outputs/third/0 outputs/longer/half
  $ train --config=longer --run_num=half > rest; cat rest
  Loading checkpoint ./outputs/longer/half/checkpoints/ckpt.tar
  …
  Starting training loop...
  Time taken for epoch 4 is …
  Loss = …
  Time taken for epoch 5 is …
  Loss = …
  Training complete
  $ diff <(losses whole | tail -n 2) <(losses rest)
  $ train --config=longer --run_num=half
  Loading checkpoint ./outputs/longer/half/checkpoints/ckpt.tar
  …
  Training complete

The checkpoint has the least loss of validation so far. What was best before a resume stays best, and ckpt_best.tar is not written again where
nothing is better.

  $ train > out; mv outputs/default trained; cd trained/0/checkpoints; cp ckpt.tar whole
  $ torch_file ckpt.tar | jq .best_val_loss > best; near 1e-9 best <(losses ../../../out | numbers | sed -n 'n;p' | sort -g | sed -n 1p)
  $ again() { rm -rf outputs/"$1"; cp -rp trained outputs/"$1"; train --config="$1"; }
  $ torch_file ckpt.tar best_val_loss=1e-9; cd ../../..; again further > out; losses out | wc -l
  1
  $ cd outputs/further/0/checkpoints; torch_file ckpt.tar | jq -c '[.epoch, .best_val_loss]'
  [3,1e-09]
  $ cd ../../../..; stat -c %y {trained,outputs/further}/0/checkpoints/ckpt_best.tar | uniq | wc -l
  1

More epochs change none that was done. Other settings are named, and the state of another optimizer is refused.

  $ cp trained/0/checkpoints/whole trained/0/checkpoints/ckpt.tar; again further | grep 'other settings'
  [1]
  $ again seed | grep 'other settings'
  …with other settings than the checkpoint: seed 0 -> 7
  $ again sgd
  train_single_gpu: error: checkpoint ./outputs/sgd/0/checkpoints/ckpt.tar holds the state of another optimizer ('adam' -> 'sgd'): name another --run_num
  [1]

A damaged checkpoint is left for the one before, and the damaged epoch is made again; without the one before it is refused.

  $ truncate -s 50000 trained/0/checkpoints/ckpt.tar; again default | grep 'going on'
  …; going on from ./outputs/default/0/checkpoints/ckpt.1.tar
  $ torch_file outputs/default/0/checkpoints/ckpt.tar | jq .epoch
  2
  $ rm trained/0/checkpoints/ckpt.1.tar; again default
  train_single_gpu: error: pytorch: ./outputs/default/0/checkpoints/ckpt.tar: …
  [1]

So is that of another model, and one that lacks a key or has none of the values.

  $ mv trained/0/checkpoints/whole trained/0/checkpoints/ckpt.tar; again deep
  train_single_gpu: error: checkpoint ./outputs/deep/0/checkpoints/ckpt.tar: model_state: …
  [1]
  $ torch_file --new trained/0/checkpoints/ckpt.tar '{"epoch": 1}'; again deep
  train_single_gpu: error: checkpoint ./outputs/deep/0/checkpoints/ckpt.tar: expected the key 'iters', got none. There are: epoch
  [1]
  $ torch_file --new trained/0/checkpoints/ckpt.tar '{"iters": 1, "epoch": -1, "model_state": {}, "optimizer_state_dict": {}, "scheduler_state_dict": {}}'
  $ again deep
  train_single_gpu: error: checkpoint ./outputs/deep/0/checkpoints/ckpt.tar: expected an epoch of at least 0, got -1
  [1]
