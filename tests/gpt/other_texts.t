# Ranks that read other texts are named

needs: utf8proc ranks

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ cp text text0; (tail -c 1 text; head -c -1 text | tail -c +2; head -c 1 text) > text1
  $ ranks 2 sh -c 'train_gpt --config tiny.toml --max-steps 1 --data text$RANK --out run' > log 2>&1
  [1]
  $ grep -m 1 "not the same" log
  train_gpt: error: data: the text is not the same on all ranks: at entry 1 rank 0 has '2000 bytes …', rank 1 has '2000 bytes …'. All ranks must read the same one
