# train_vit on a GPU.

needs: hdf5 yaml emulated

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; sed 's/limit_nsamples_val: None/limit_nsamples_val: 1/' fields/ViT.yaml > one.yaml
  $ train() { on_gpu train_vit --yaml_config one.yaml --local_batch_size 1 "$@" 2> said; }
  $ losses() { sed -n 's/.*Avg \(train\|val\) loss=//p' "$1"; }

fp16 trains with a loss scale.

  $ train --amp_mode fp16 --num_iters 3 --run_num fp16 > out; losses out | jq -c '. - 1 | fabs < 0.2'
  true
  true
  $ grep -o 'DONE.*' out
  DONE ---- rank 0

A captured step is the same step, bit for bit.

  $ train --num_iters 5 --graph off --run_num eager > eager; train --num_iters 5 --graph on --run_num graph > graph
  $ diff <(losses eager) <(losses graph); losses graph | wc -l
  2

FSDP does, too. Its loss scale is in a sharded checkpoint: a run that goes on counts four steps without overflow.

  $ shards() { train --amp_mode fp16 --parallel fsdp --fsdp-checkpoints sharded --run_num shards "$@"; }
  $ cp fields/logs/base/1GPU/fp16/out.log whole; shards --num_iters 3 > out; near 1e-3 <(losses out) <(losses whole)
  $ shards --num_iters 4 --resume > out; grep -a -A 1 good_steps fields/logs/base/1GPU/shards/checkpoint/index.json | grep -o '"value".*'
  "value": "0x1p+2"
