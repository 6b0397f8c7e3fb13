# A run that stops goes on bit for bit, from the newest checkpoint that is whole.

A small net on noise: what counts is that every bit of state comes back.

  $ train() { train_image --data random:200x16x16x3 --model resnet8 --batch-size 16 --augment cifar --epochs 10 --warmup 1 --mixup 0.2 "$@"; }
  $ until_step() { train "${@:3}" --resume auto --max-steps "$2" --out "$1" > log 2>&1 && grep -q "stopped by --max-steps after step $2" log || cat log; }
  $ last() { echo $1/checkpoint_last.safetensors; }

60 and 40 steps are 100: weights, optimizer, sums, best epoch, random numbers.

  $ until_step whole 100; until_step pieces 60; until_step pieces 100; same_state $(last whole) $(last pieces)
  $ adamw="--optimizer adamw --lr 0.001 --workers 0 --precision bf16"
  $ until_step whole_adamw 100 $adamw; until_step pieces_adamw 60 $adamw; until_step pieces_adamw 100 $adamw
  $ same_state $(last whole_adamw) $(last pieces_adamw); state $(last pieces_adamw) | grep '^step '
  step 100

The number of workers changes nothing, and every augmentation is a function of epoch and image.

  $ until_step none 20 --workers 0; until_step three 20 --workers 3; same_state $(last none) $(last three)
  $ for augment in autoaugment:svhn cifar+randaugment:2,9 flip+trivialaugment "imagenet:16 --crop-scale 0.3,1 --interpolation bicubic"; do
  >   more="--augment $augment --color-jitter 0.4,0.4,0.4,0.1 --random-erasing 0.5 --cutmix 1"
  >   rm -rf whole pieces; until_step whole 30 $more --workers 0; until_step pieces 8 $more --workers 3; until_step pieces 30 $more --workers 3
  >   same_state $(last whole) $(last pieces) && echo same
  > done
  same
  same
  same
  same

The augmentation is the one asked for, whatever the image size: four of them give four trainings.

  $ for augment in none flip shapes cifar; do
  >   train --image-size 20 --max-steps 2 --log-interval 1 --augment $augment --out $augment > log 2>&1; of $augment/metrics.jsonl loss | xargs
  > done | sort -u | wc -l
  4
  $ of cifar/metrics.jsonl loss | wc -l
  2

Settings that may change are said. Others are refused, and the checkpoint stays.

  $ until_step run 20; on() { train "$@" --resume auto --max-steps ${steps:-21} --out run 2>&1 | grep 'settings\|error'; }
  $ on --seed 7
  train_image: error: checkpoint run/checkpoint_last.safetensors is of the midst of an epoch, whose order of images depends on --seed (1 -> 7)
  [1]
  $ on --optimizer adam
  train_image: error: checkpoint run/checkpoint_last.safetensors holds the state of another optimizer ("sgd" -> "adam"). To change it, start a new run with --weights run/checkpoint_last.safetensors
  [1]
  $ on --data random:100x16x16x3
  … rank 0: with other settings than the checkpoint: data "random:200x16x16x3" -> "random:100x16x16x3"
  train_image: error: checkpoint run/checkpoint_last.safetensors was made with 13 steps per epoch, this run has 7: another data set. Name that of the checkpoint, or start a new run from its weights
  [1]
  $ state $(last run) | grep '^step '
  step 20
  $ on --lr 0.05 --schedule constant --augment none --epochs 20 --workers 0
  … rank 0: with other settings than the checkpoint: augment "cifar" -> "none", epochs 10 -> 20, lr 0.1 -> 0.05, schedule "cosine" -> "constant"
  $ steps=22 on --lr 0.05 --schedule constant --augment none --epochs 20 --workers 1
  [1]
  $ state $(last run) | grep '^step '
  step 22

A damaged checkpoint is passed over.

  $ rm -rf whole run; until_step whole 12; until_step run 5; until_step run 8
  $ python3 -c 'import sys; data = bytearray(open(sys.argv[1], "rb").read()); data[len(data) // 2] ^= 1; open(sys.argv[1], "wb").write(data)' $(last run)
  $ train --resume auto --out run --max-steps 12 2>&1 | grep 'going on\|resumed'
  warning: checkpoint: run/checkpoint_last.safetensors: damaged: its bytes do not fit the checksum at its end. Resume from another checkpoint; going on from run/checkpoint_last.1.safetensors
  … rank 0: resumed from run/checkpoint_last.1.safetensors at epoch 1, step 5
  $ same_state $(last whole) $(last run)

Where the last one is gone, as after a full disk, the best goes on.

  $ until_step run 14; rm run/checkpoint_last*; train --resume auto --out run --max-steps 15 2>&1 | grep 'going on\|resumed'
  warning: there is no checkpoint_last.safetensors in run: going on from checkpoint_best.safetensors
  … rank 0: resumed from run/checkpoint_best.safetensors at epoch 2, step 13

A link to a file that is not there is an error, not a new run.

  $ rm run/checkpoint_*; ln -s nowhere $(last run); train --resume auto --out run --max-steps 12 2>&1 | tail -n 1
  train_image: error: checkpoint: run/checkpoint_last.safetensors: expected a checkpoint, got a link to a file that is not there
  [1]

Lines of a run that died before its first checkpoint go.

  $ rm -rf run; mkdir run; echo '{"step":13,"split":"train","loss":9}' > run/metrics.jsonl
  $ until_step run 13; of run/metrics.jsonl loss | grep -c '^9$'
  0
  [1]

After a kill between the best checkpoint and the last one, the best is an epoch ahead: the best of the epochs from here on counts. Some seed
has its best epoch in the second.

  $ for seed in $(seq 40); do rm -rf run; until_step run 26 --seed $seed; [ $(jq .best_epoch run/summary.json) = 2 ] && break; done
  $ best() { state run/checkpoint_$1.safetensors | grep '^best_epoch'; }
  $ cp -r run ahead; rm -rf run; until_step run 13 --seed $seed; best last; cp ahead/checkpoint_best.safetensors run
  best_epoch 1
  $ train --seed $seed --resume auto --max-steps 26 --out run 2>&1 | grep 'from here on'
  … rank 0: no checkpoint_best of epoch 1 in run: the best of the epochs from here on is kept
  $ best last; best best; jq .best_epoch run/summary.json
  best_epoch 2
  best_epoch 2
  2
