# A checkpoint of several ranks goes on at another number of them; ranks that do not agree are named.

needs: ranks

  $ . "$WEFT"/tests/train_image/ranks.sh
  $ flags="--data random:100x8x8x3 --model resnet8 --augment cifar --epochs 2 --workers 0 --sync-batch-norm --backend gloo --lr 0.02"

Of four ranks at 1, 2 and 3, replicated or sharded (for the bounds see ranks.t; momenta are apart by more than weights).

  $ by_hand 4 train_image $flags --batch-size 6 --out four --max-steps 6
  $ for way in "1 auto" "2 ddp" "3 ddp" "2 fsdp"; do
  >   set -- $way; cp -r four $2$1; by_hand $1 train_image $flags --resume auto --fsdp-min-params 4000 --parallel $2 --batch-size $((24 / $1)) --out $2$1
  >   grep -o 'at epoch 2, step 6' log.0
  > done
  at epoch 2, step 6
  at epoch 2, step 6
  at epoch 2, step 6
  at epoch 2, step 6
  $ by_hand 4 train_image $flags --batch-size 6 --out four --resume auto
  $ for out in auto1 ddp2 ddp3 fsdp2; do
  >   close $out four; apart 5e-2 2e-1 $(last $out) $(last four) optimizer/
  > done; losses four | wc -l
  4

Another global batch is refused, by one line.

  $ train_image $flags --batch-size 16 --max-steps 1 --out run > log 2>&1; by_hand 2 train_image $flags --batch-size 16 --resume auto --out run
  exit codes 1 1
  $ tail -n 1 log.0
  train_image: error: checkpoint run/checkpoint_last.safetensors was made with 16 images per step, this run has 32 (2 ranks of 16). Use --batch-size 8

Other flags or other images on one of them are named, by each rank.

  $ by_hand 2 sh -c "exec train_image $flags --batch-size 8 --out new --momentum 0.\$RANK"
  exit codes 1 1
  $ tail -qn 1 log.0 log.1
  train_image: error: settings: the flags are not the same on all ranks: at entry … rank 0 has 'momentum = 0.0', rank 1 has 'momentum = 0.1'. Start all ranks with the same flags
  train_image: error: settings: the flags are not the same on all ranks: at entry … rank 0 has 'momentum = 0.0', rank 1 has 'momentum = 0.1'. Start all ranks with the same flags
  $ by_hand 2 sh -c "exec train_image $flags --batch-size 8 --out new --data random:10\${RANK}x8x8x3"
  exit codes 1 1
  $ tail -qn 1 log.0 log.1
  train_image: error: data: the set is not the same on all ranks: at entry 1 rank 0 has '100 images for training', rank 1 has '101 images for training'. All ranks must read the same images
  train_image: error: data: the set is not the same on all ranks: at entry 1 rank 0 has '100 images for training', rank 1 has '101 images for training'. All ranks must read the same images

The first rank alone may be told to export: all ranks of a sharded model gather the weights that one writes.

  $ by_hand 2 sh -c "exec train_image $flags --batch-size 10 --epochs 1 --parallel fsdp --out new \$([ \$RANK = 0 ] && echo --export weights.safetensors)"
  $ apart 0 0 weights.safetensors weights.safetensors linear.weight

A loss that is not finite stops all, and names the rank.

  $ for parallel in ddp fsdp; do by_hand 2 train_image $flags --batch-size 8 --lr 1e30 --parallel $parallel --out $parallel; tail -qn 1 log.0 log.1; done
  exit codes 1 1
  train_image: error: loss is not finite (…) on rank … at epoch 1, step …: the data and the weights …; it begins in … (WEFT_CHECK_NAN=1). Lower --lr, add --warmup or --clip-norm. The last good checkpoint is kept
  train_image: error: loss is not finite (…) on rank … at epoch 1, step …: the data and the weights …; it begins in … (WEFT_CHECK_NAN=1). Lower --lr, add --warmup or --clip-norm. The last good checkpoint is kept
  exit codes 1 1
  train_image: error: loss is not finite (…) on rank … at epoch 1, step …: the data and the weights …. One rank, or --parallel ddp for a loss, can tell more. The last good checkpoint is kept
  train_image: error: loss is not finite (…) on rank … at epoch 1, step …: the data and the weights …. One rank, or --parallel ddp for a loss, can tell more. The last good checkpoint is kept
