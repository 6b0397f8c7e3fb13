# Averages of the weights over the steps: --ema.

  $ train() { train_image --data random:96x16x16x3 --model resnet8 --batch-size 16 --augment none --workers 0 --lr 0.05 --mean 0.5 --std 0.25 "$@" 2> log; }
  $ last() { echo $1/checkpoint_last.safetensors; }

They leave the training alone, and go on bit for bit.

  $ train --epochs 3 --max-steps 14 --out without | tail -n 1
  run     without
  $ with="--epochs 3 --ema 0.9 --ema-warmup"
  $ train $with --max-steps 14 --out whole | tail -n 1
  run     whole
  $ diff <(state $(last without) | grep -v ^best) <(state $(last whole) | grep -v '^best\|^ema')
  $ train $with --max-steps 5 --out pieces | tail -n 1; train $with --resume auto --max-steps 14 --out pieces | tail -n 1
  run     pieces
  run     pieces
  $ same_state $(last whole) $(last pieces)
  $ state $(last whole) | grep 'ema/updates\|ema_buffers/bn1.running_mean'
  ema/updates 0x1.cp+3
  ema_buffers/bn1.running_mean.ema F32 [16] …

They are validated and exported.

  $ train --epochs 2 --ema 0.9 --export weights.safetensors --out run | tail -n 1
  wrote   weights.safetensors
  $ checksums() { state $1 | awk -v of="^$2" '$1 ~ of && $1 ~ /weight|bias|running/ && !/, 3, 3/ { sub(of, "", $1); sub(/\.ema$/, "", $1); print $1, $NF }' | sort; }
  $ diff <(checksums weights.safetensors) <(checksums $(last run) 'ema(_buffers)?/'); checksums weights.safetensors | wc -l
  30
  $ diff <(checksums weights.safetensors) <(checksums $(last run) model/) | grep -c '^[<>] linear.weight'
  2
  [1]
  $ train --eval-only --weights weights.safetensors | grep -o 'val loss .*%' > line
  $ diff line <(jq -r '[.val_loss, .val_accuracy * 100] | @tsv' run/summary.json | xargs printf 'val loss %.4f accuracy %.2f%%\n')

A checkpoint without them cannot be resumed with them.

  $ train --epochs 2 --max-steps 2 --out bare | tail -n 1; train --epochs 2 --ema 0.9 --resume auto --out bare > out || echo $?; cat log
  run     bare
  1
  … rank 0: with other settings than the checkpoint: ema 0.0 -> 0.9
  train_image: error: checkpoint bare/checkpoint_last.safetensors was made without --ema: its averages cannot be resumed
