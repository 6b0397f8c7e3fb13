# Tiny Shakespeare has the tokens that nanoGPT's prepare.py says

needs: shared/text/tinyshakespeare/input.txt

  $ train_gpt --dry-run --device cpu --model gpt_tiny --data "$WEFT_SHARED_DATA"/text/tinyshakespeare/input.txt | grep ^data
  data    …/input.txt: 1003854 tokens, 111540 for validation, of 65
