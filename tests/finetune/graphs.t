# CUDA graphs of several lengths change no bit

needs: emulated utf8proc ranks

50 texts in batches of 4, of three lengths, of which two are padded to the same multiple of 8. The last batch of an epoch has two texts.

  $ mkdir data; printf 'sentence\tlabel\n' > data/train.tsv
  $ for i in $(seq 50); do word=$((i % 2)); more=; [ $((i % 3)) != 0 ] || more=' so'; [ $((i % 7)) != 0 ] || more=' and so it goes on and'; printf 'a film%s w%s\t%s\n' "$more" $word $word; done >> data/train.tsv
  $ head -6 data/train.tsv > data/dev.tsv
  $ tune() { env -u CUDA_VISIBLE_DEVICES finetune --data data --model bert_tiny --vocab-size 100 --batch-size 4 --epochs 2 --logging-steps 1 --device emulated --out "$1" "${@:2}" 2> "$1.log" | grep "^{'loss\|^{'eval_loss" > "$1.lines" || cat "$1.log"; }
  $ for graph in on off; do tune $graph --graph $graph; done
  $ wc -l < on.lines; cmp on.lines off.lines; cmp on/checkpoint-26/model.safetensors off/checkpoint-26/model.safetensors
  28
  $ grep -ho 'graphs:.*' on.log off.log
  graphs: 2 of at most 16 shapes, which replayed 20 of 26 steps

Ranks have batches of other lengths.

  $ weft-run --nproc_per_node 2 finetune --data data --model bert_tiny --vocab-size 100 --graph on --device cpu --out two 2>&1 | grep -o 'graph on: .*' | sort -u
  graph on: expected one rank, got 2, whose batches differ in shape …
  [2]
