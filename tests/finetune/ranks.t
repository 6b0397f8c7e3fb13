# finetune on several ranks.

needs: utf8proc zip ranks

  $ . "$WEFT"/tests/finetune/texts.sh; sentences data
  $ on() { ranks "$1" finetune --data data --model bert_tiny --vocab-size 100 --lr 1e-3 --epochs 3 --logging-steps 10 --save-steps 20 "${@:2}"; }

Replicated and sharded, they learn as one.

  $ for parallel in ddp fsdp; do
  >   on 2 --batch-size 4 --min-num-params 100000 --parallel $parallel --out $parallel > log 2>&1; grep -c "^{'eval_loss" log
  >   jq -c '[.steps, .eval_accuracy >= 0.95]' $parallel/summary.json; ls $parallel/checkpoint-36/model.safetensors
  > done
  3
  [36,true]
  ddp/checkpoint-36/model.safetensors
  3
  [36,true]
  fsdp/checkpoint-36/model.safetensors
  $ on 2 --batch-size 4 --min-num-params 100000 --parallel fsdp --recompute --out again > log 2>&1; cmp {fsdp,again}/checkpoint-36/model.safetensors
  $ for how in whole sharded; do
  >   on 2 --batch-size 2 --accumulate 2 --min-num-params 100000 --max-steps 10 --parallel fsdp --fsdp-accumulate $how --out sum_$how > $how.log 2>&1
  >   printed $how.log | tr -dc '0-9. \n' | cut -d' ' -f2 > $how
  > done; wc -l < whole; near 1e-3 whole sharded; rm -r sum_*
  1

Ranks with other texts are named.

  $ cp -r data data0; cp -r data data1; sed -i '0,/story/s/story/novel/' data1/dev.tsv
  $ ranks 2 sh -c 'exec finetune --data data$RANK --model bert_tiny --vocab-size 100 --out other' > log 2>&1
  [1]
  $ grep -o 'data: the texts are not.*dev.tsv of' log | sort -u
  data: the texts are not the same on all ranks: at entry 2 rank 0 has 'dev.tsv of 548 bytes with the checksum 512699460', rank 1 has 'dev.tsv of

They go on bit for bit; each rank has a random state of its own.

  $ for parallel in ddp "fsdp --min-num-params 100000"; do
  >   more="--logging-steps 5 --weight-decay 0.01 --epochs 2 --batch-size 4 --ema 0.9 --layer-decay 0.7 --parallel $parallel"; rm -rf whole pieces
  >   on 2 $more --out whole > whole.log 2>&1; on 2 $more --max-steps 17 --out pieces > first.log 2>&1; ls pieces/checkpoint-17/weft_rng_state_1.pth
  >   on 2 $more --resume_from_checkpoint last --out pieces > rest.log 2>&1
  >   diff <(printed whole.log) <(printed first.log rest.log); printed whole.log | wc -l; diff -r -x trainer_state.json whole/checkpoint-24 pieces/checkpoint-24
  > done
  pieces/checkpoint-17/weft_rng_state_1.pth
  6
  pieces/checkpoint-17/weft_rng_state_1.pth
  6

Accumulated batches are one large batch.

  $ accumulated="--weight-decay 0.01 --epochs 1 --dropout 0 --lr 1e-4"
  $ on 1 $accumulated --batch-size 20 --out large > log 2>&1
  $ for parallel in ddp "fsdp --min-num-params 100000"; do
  >   on 2 $accumulated --batch-size 5 --accumulate 2 --parallel $parallel --overwrite --out small > log 2>&1; apart mean 1e-6 large/checkpoint-5/model.safetensors small/checkpoint-5/model.safetensors
  > done

Sharded checkpoints lose no bit; the weights are published at the end. One process goes on, too.

  $ more="$more --fsdp-checkpoints sharded"; on 2 $more --max-steps 17 --out shards > first.log 2>&1; ls shards/checkpoint-17/{index.json,rank*,optimizer.pt} 2> /dev/null
  shards/checkpoint-17/index.json
  shards/checkpoint-17/rank_00000.safetensors
  [2]
  $ cp -r shards moved; on 2 $more --resume_from_checkpoint last --out shards > rest.log 2>&1
  $ diff <(printed whole.log) <(printed first.log rest.log); same shards/model/model.safetensors whole/checkpoint-24/model.safetensors
  $ on 1 --epochs 2 --batch-size 8 --ema 0.9 --layer-decay 0.7 --resume_from_checkpoint last --out moved > log 2>&1; grep -o 'resumed from .*' log; ls moved/checkpoint-24/model.safetensors
  resumed from moved/checkpoint-17 at step 17
  moved/checkpoint-24/model.safetensors
