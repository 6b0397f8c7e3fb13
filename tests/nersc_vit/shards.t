# Models larger than a GPU: sharded weights give the losses of one rank.

needs: hdf5 yaml ranks

Clipping acts, by the norm over all shards. Of 47 samples in steps of 16 three data ranks have 6, 5 and 5.

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; cd fields
  $ sed "s/'cosine'/'none'/; s/limit_nsamples: None/limit_nsamples: 47/; s/limit_nsamples_val: None/limit_nsamples_val: 17/" ViT.yaml > odd.yaml
  $ train() { ranks "$1" train_vit --device cpu --yaml_config odd.yaml --num_iters 6 --max_grad_norm 0.05 --run_num "${@:2}" 2> warned; }
  $ losses() { sed -n 's/.*Avg \(train\|val\) loss=//p' "$1"; }
  $ train 1 one > one; losses one | wc -l
  6
  $ fsdp() { train "$1" "$2" --parallel fsdp --min-num-params 2000 "${@:3}" > many; near 5e-6 <(losses many) <(losses one); }
  $ fsdp 2 full; cp many full; fsdp 4 hybrid --fsdp-strategy hybrid_shard --fsdp-shard-size 2; fsdp 3 grad_op --fsdp-strategy shard_grad_op
  $ fsdp 4 parts --row_parallel_size 2 --sequence_parallel --recompute
  $ staged() { fsdp 4 "$1" --pipeline_parallel_size 2 --min-num-params 0 "${@:2}"; }
  $ staged stages --micro_batches 3 --fsdp-offload parameters; staged low --max_grad_norm 0.05 --fsdp-strategy shard_grad_op --recompute

Offloads and recomputation change no bit, in the checkpoint either.

  $ fsdp 2 offloaded --fsdp-offload optimizer --recompute; cd logs/base/2GPU; weft-weights diff {full,offloaded}/checkpoint.safetensors | tail -n 1 | grep -o '0 different'
  0 different
  $ cd ../../..; diff <(losses many) <(losses full)

Two ranks have half of the weights each, and four of a grid a quarter but for whole norms.

  $ for how in '1 --parallel ddp' '2 --parallel fsdp' '4 --parallel fsdp --fsdp-strategy hybrid_shard --fsdp-shard-size 2' '4 --parallel fsdp --row_parallel_size 2'; do
  >   train ${how/ / none } --dry-run 2>&1 | grep -o '[0-9]* parameters'
  > done
  133440 parameters
  66720 parameters
  66720 parameters
  41952 parameters

A sharded checkpoint is a folder. It goes on at any number of ranks; they may write one file again, and a folder from that.

  $ train 2 parted --num_iters 2 --parallel fsdp --fsdp-checkpoints sharded > out; cd logs/base; ls -d 2GPU/parted/checkpoint*/*
  2GPU/parted/checkpoint/index.json
  2GPU/parted/checkpoint/rank_00000.safetensors
  $ mkdir -p 1GPU 2PP 4GPU; for to in 1GPU 2PP 4GPU; do cp -r 2GPU/parted $to; done; cd ../..
  $ go_on() { train "$1" parted --resume "${@:3}" > out; grep -o 'resumed.*' out | grep -o 'step.*'; (cd "logs/base/$2/parted"; ls -d checkpoint{,.safetensors} 2> /dev/null); }
  $ same_losses() { near 5e-6 <(losses logs/base/"$1"/parted/out.log | tail -n 4) <(tail -n 4 <(losses one)); }
  $ go_on 4 4GPU --parallel fsdp --fsdp-checkpoints sharded --fsdp-strategy hybrid_shard --fsdp-shard-size 2; same_losses 4GPU
  step 2
  checkpoint
  $ go_on 4 2PP --parallel fsdp --fsdp-checkpoints sharded --pipeline_parallel_size 2; same_losses 2PP
  step 2
  checkpoint
  $ go_on 1 1GPU --num_iters 4; rm -r logs/base/2GPU/parted; cp -r logs/base/1GPU/parted logs/base/2GPU
  step 2
  checkpoint.safetensors
  $ go_on 2 2GPU --fsdp-checkpoints sharded; same_losses 2GPU
  step 4
  checkpoint

Gradients that travel in bf16 do something, but little.

  $ low() { train 2 "$@" --grad-compression bf16 > many; near 0.0078125 <(losses many) <(losses one); diff <(losses many) <(losses one) > other || echo differ; }
  $ low ddp; low fsdp_bf16 --parallel fsdp --amp_mode bf16
  differ
  differ

What fits no other is refused before anything runs.

  $ refused() { train 2 none --dry-run "$@" > said; sed -n 's/ (train_vit --help.*//; /error: --/p' warned | sort -u; }
  $ refused --fsdp-offload parameters
  train_vit: error: --fsdp-offload, --fsdp-strategy, --fsdp-shard-size and --fsdp-accumulate: expected --parallel fsdp, got auto
  $ refused --noddp --parallel fsdp
  train_vit: error: --noddp: expected --parallel auto, got fsdp
  $ refused --parallel fsdp --grad-compression bf16
  train_vit: error: --grad-compression bf16: expected bf16 products under --parallel fsdp, whose gradients have the weights' dtype
  $ refused --parallel fsdp --pipeline_parallel_size 2 --min-num-params 2000
  train_vit: error: --min-num-params: expected --pipeline_parallel_size 1, got 2: each block of a pipeline is a unit
  $ refused --parallel fsdp --graph on
  train_vit: error: --graph on: expected --parallel none or ddp, got fsdp, whose weights come and go
  $ refused --parallel none --row_parallel_size 2
  train_vit: error: --row_parallel_size: 2 does not divide 1 rank
  $ train 2 none --dry-run --parallel fsdp --fsdp-strategy hybrid_shard > out; grep -o 'error: .*' warned | sort -u
  error: fsdp: hybrid_shard: a shard_size of 0 does not divide 2 ranks
