# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Transcripts of chats begin with it: `base`, the folder of a small decoder with a chat template, and 200 conversations in `chat`.
# shellcheck source=tests/gpt/tiny.sh
. "$WEFT"/tests/gpt/tiny.sh
sed -i 's/gpt_tiny/llama_tiny/; s/16/100/' tiny.toml
python3 - <<'END'
import json
who, does = ("cat", "dog", "bird", "fish"), ("sits", "runs", "sings", "sleeps")
with open("text", "w") as text, open("chat", "w") as chat:
    for i in range(200):
        turns = [(does[(i + turn) % 4], who[(i + turn) % 4]) for turn in range(i % 3 + 1)]
        text.writelines(f"<u>who {verb}?<e>\n<a>the {animal} {verb}.<e>\n" for verb, animal in turns)
        messages = [m for verb, animal in turns for m in ({"role": "user", "content": f"who {verb}?"},
                                                         {"role": "assistant", "content": f"the {animal} {verb}."})]
        chat.write(json.dumps({"messages": messages}) + "\n")
END
train_gpt --config tiny.toml --batch-size 2 --max-steps 1 --out base >log 2>&1 || cat log
template="{% for m in messages %}{% if m.role == 'user' %}<u>{{ m.content }}<e>
{% else %}<a>{% generation %}{{ m.content }}<e>{% endgeneration %}{{ '\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
jq --arg template "$template" '.chat_template = $template' base/model/tokenizer_config.json >tokenizer.json
mv tokenizer.json base/model/tokenizer_config.json
printf 'data = "chat"\nweights = "base"\n' | cat - <(grep -v ^data tiny.toml) >tune.toml
