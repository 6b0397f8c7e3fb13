# Tiny Shakespeare has the tokens that nanoGPT's prepare.py says

needs: shared/text/tinyshakespeare/input.txt

  $ train_gpt --dry-run --device cpu --model gpt_tiny --data "$WEFT_SHARED_DATA"/text/tinyshakespeare/input.txt | grep ^data
