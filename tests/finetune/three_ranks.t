# Three ranks train each text once: 91 texts in steps of 9; in the last one, two of three ranks have none. In steps of 18 it is their second batch.

needs: utf8proc zip ranks

  $ . "$WEFT"/tests/finetune/texts.sh; sentences data; head -n 92 data/train.tsv > short; mv short data/train.tsv
  $ flags="--data data --model bert_tiny --vocab-size 100 --save-steps 20 --weight-decay 0.01 --epochs 1 --dropout 0 --lr 1e-4 --logging-steps 1"
  $ losses() { sed -n "s/^{'loss': \([0-9.e-]*\),.*/\1/p" $1; }

Losses are printed with four digits.

  $ for accumulate in 1 2; do
  >   end=checkpoint-$((12 - accumulate)); [ $accumulate = 1 ] || end=checkpoint-6; rm -rf one
  >   finetune $flags --accumulate $accumulate --batch-size 9 --out one > one.log 2>&1; losses one.log | wc -l
  >   for parallel in ddp "fsdp --min-num-params 100000"; do
  >     rm -rf three; ranks 3 finetune $flags --accumulate $accumulate --batch-size 3 --parallel $parallel --out three > three.log 2>&1
  >     apart mean 1e-6 one/$end/model.safetensors three/$end/model.safetensors
  >     paste <(losses one.log) <(losses three.log) | awk 'NF != 2 || !(($1 - $2) ^ 2 <= 1.1e-4 ^ 2)'
  >   done
  > done
  11
  6
