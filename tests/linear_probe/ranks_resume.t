# linear_probe stops and goes on, bit for bit, on two ranks, replicated and sharded.

needs: ranks

  $ flags="--data random:44x16x16x3 --model vit_tiny4 --image-size 16 --workers 1 --precision f32"
  $ probe() { ranks 2 linear_probe $flags "$@"; }
  $ until_step() { probe -b 8 -e 4 "${@:3}" --resume auto --max-steps "$2" --out "$1" > log 2>&1 && grep -q "stopped by --max-steps after step $2" log || cat log; }
  $ bits() { state $1/checkpoint_last.safetensors | grep -v 'images_per_second \|peak_tensor_bytes '; }
  $ for parallel in ddp "fsdp --min-num-params 100000 --ema 0.9 --layer-decay 0.7 --weight-decay 0.1"; do for kept in on off; do
  >   rm -rf whole pieces; more="--parallel $parallel --cache-features $kept"
  >   until_step whole 20 $more; for step in 7 16 20; do until_step pieces $step $more; done
  >   bits whole | grep '^phase'; diff <(bits whole) <(bits pieces)
  > done; done
  phase finetune
  phase finetune
  phase finetune
  phase finetune

Accumulated batches are one large batch (resume.t has the bound).

  $ accumulated="-e 1 -lr 8e-4 --layer-decay 0.8 --weight-decay 0.1 --ema 0.5"
  $ linear_probe $flags $accumulated -b 12 --out large > log 2>&1
  $ for parallel in ddp "fsdp --min-num-params 100000"; do
  >   probe $accumulated -b 3 --accumulate 2 --parallel $parallel --overwrite --out small > log 2>&1; apart mean 1e-6 large/finetuned.safetensors small/finetuned.safetensors
  > done

With sharded checkpoints it ends with the weights of whole ones.

  $ whole() { probe -b 8 -e 2 --parallel fsdp --min-num-params 100000 --ema 0.9 --weight-decay 0.1 --resume auto "$@" > log 2>&1 || cat log; }
  $ for kept in on off; do
  >   rm -rf whole pieces; whole --cache-features $kept --out whole
  >   for step in 2 5 9; do whole --cache-features $kept --fsdp-checkpoints sharded --max-steps $step --out pieces; ls pieces/checkpoint_last/index.json; done
  >   whole --cache-features $kept --fsdp-checkpoints sharded --out pieces; same {whole,pieces}/probe.safetensors && same {whole,pieces}/finetuned.safetensors
  > done
  pieces/checkpoint_last/index.json
  pieces/checkpoint_last/index.json
  pieces/checkpoint_last/index.json
  pieces/checkpoint_last/index.json
  pieces/checkpoint_last/index.json
  pieces/checkpoint_last/index.json
