# CUDA graphs of several lengths change no bit

needs: emulated, utf8proc

50 texts, in batches of 4: most batches have 9 words, the others 3, and the last of an epoch has two texts.

  $ mkdir data; for part in train dev; do printf 'sentence\tlabel\n' > data/$part.tsv; done
  $ for i in $(seq 50); do word=$((i % 2)); long=; [ $((i % 5)) != 0 ] || long=' and so it goes on and'; printf 'a film%s w%s\t%s\n' "$long" $word $word >> data/train.tsv; done
  $ head -5 data/train.tsv >> data/dev.tsv
  $ tune() { env -u CUDA_VISIBLE_DEVICES finetune --data data --model bert_tiny --vocab-size 100 --batch-size 4 --epochs 1 --logging-steps 1 --device emulated --out "$1" "${@:2}" 2> "$1.log" | grep "^{'loss\|^{'eval_loss" > "$1.lines" || cat "$1.log"; }
  $ tune on --pad-to-multiple-of 4 --graph on; tune off --pad-to-multiple-of 4 --graph off
  $ wc -l < on.lines; cmp on.lines off.lines; same $(state on/checkpoint-13/model.safetensors) $(state off/checkpoint-13/model.safetensors)
  14
  $ grep -h graphs on.log off.log
  graphs: 2 of at most 16 shapes, which replayed 7 of 13 steps
