# Ranks train what one process trains.

needs: ranks

  $ . "$WEFT"/tests/train_image/ranks.sh
  $ flags="--data random:100x8x8x3 --model resnet8 --augment cifar --epochs 2 --workers 0 --sync-batch-norm --backend gloo --lr 0.02"

Two classes of images that do not divide by the batch: the last step of an epoch is uneven. Ranks and one process round otherwise (1e-7), and
now and then an activation of almost 0 falls on the other side of a ReLU, which a few steps of a net on noise make some 1e-3 of the weights.
The proof within the roundings is tests/dist/ddp.cpp. A fault in the images, the steps or the counts changes the weights by 1e-1. `close` allows 5e-3.

  $ train_image $flags --batch-size 16 --out alone > log 2>&1; losses alone | wc -l
  4
  $ on_two() { rm -rf two; by_hand 2 train_image $flags --batch-size 8 --out two "$@"; grep -h '^ranks' log.*; wc -c < log.1; close two alone; }
  $ on_two --parallel auto
  ranks   2 over gloo (RANK and WORLD_SIZE), ddp, 1 bucket, 7 batch norms over all ranks; 8 images each per step, 16 together
  0
  $ grep -o 'epoch 2/2' log.0; grep -o '# 2 ranks: 16 images per step' two/config.toml; jq .ranks two/summary.json
  epoch 2/2
  # 2 ranks: 16 images per step
  2
  $ on_two --parallel fsdp --fsdp-min-params 4000
  ranks   2 over gloo (RANK and WORLD_SIZE), fsdp full_shard, 6 units, 7 batch norms over all ranks; 8 images each per step, 16 together
  0
  $ on_two --parallel fsdp --fsdp-strategy shard_grad_op --clip-norm 1e6
  ranks   2 over gloo (RANK and WORLD_SIZE), fsdp shard_grad_op, 1 unit, 7 batch norms over all ranks; 8 images each per step, 16 together
  0

A single step, before a ReLU can multiply roundings, with averages of the weights: within the roundings of the sums over 16 images of 8x8.

  $ train_image $flags --ema 0.5 --batch-size 16 --max-steps 1 --out step > log 2>&1
  $ for parallel in ddp "fsdp --fsdp-min-params 4000"; do
  >   rm -rf two; by_hand 2 train_image $flags --ema 0.5 --batch-size 8 --max-steps 1 --parallel $parallel --out two
  >   for part in model ema ema_buffers; do apart 2e-6 2e-6 $(last two) $(last step) $part/; done
  > done

The last step may have fewer images than there are ranks: the others have a dummy batch, which no norm and no count sees. A step of twelve
images (or three) and another of a single one:

  $ for data in 13 37; do for way in 1 2 3 4 "3 --parallel fsdp --fsdp-min-params 4000"; do
  >   set -- $way; rm -rf run; by_hand $1 train_image $flags --epochs 1 --data random:${data}x8x8x3 "${@:2}" --batch-size $((12 / $1)) --out run
  >   [ "$way" != 1 ] || { rm -rf one; cp -r run one; }
  >   if [ $data = 13 ]; then apart 2e-6 2e-6 $(last run) $(last one) model/; near 5e-6 <(losses run) <(losses one); fi; close run one
  > done; done

Blocks that backward computes again change no bit.

  $ for again in "" --recompute; do
  >   by_hand 2 train_image --data random:32x16x16x3 --model vit_tiny4 --batch-size 8 --epochs 1 --workers 0 --parallel fsdp $again --out vit$again
  > done; apart 0 0 $(last vit) $(last vit--recompute) model/; losses vit | wc -l; cmp <(losses vit) <(losses vit--recompute)
  2

Every few steps rank 0 says how long they took, and which rank is the slowest.

  $ WEFT_STEP_TIMES=2 by_hand 2 train_image $flags --batch-size 8 --epochs 1 --out timed; cat log.* | grep -c '^weft: steps .* slowest: rank [01] on'
  3

An evaluation counts each image once, on any number of ranks.

  $ evaluate="train_image --data random:101x8x8x3 --model resnet8 --eval-only --workers 0 --backend gloo"
  $ result() { grep -o 'val loss .* of 101)' $1; }
  $ $evaluate > alone.log 2>&1; grep warning alone.log; result alone.log | sed 's/[0-9.]* accuracy .* (.* of/… of/'
  warning: --eval-only without --weights FILE evaluates random weights
  val loss … of 101)
  $ for way in "2 ddp" "3 ddp" "3 fsdp"; do
  >   set -- $way; by_hand $1 $evaluate --batch-size 11 --parallel $2; diff <(result alone.log) <(result log.0); cat log.1
  > done

Ranks come from weft-run, too.

  $ ranks 2 train_image $flags --batch-size 8 --max-steps 3 --out run --overwrite > log 2>&1 && grep '^ranks' log; grep -o 'stopped by --max-steps after step 3' log
  ranks   2 over gloo (RANK and WORLD_SIZE), ddp, 1 bucket, 7 batch norms over all ranks; 8 images each per step, 16 together
  stopped by --max-steps after step 3
