#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes chat_templates/cases.json: what Jinja2 makes of templates in the style of Llama-3, Qwen-2.5, Qwen-3, Mistral and SmolLM,
of small templates for each construct, and of random ones. The environment has transformers' settings.

    chat_templates.py [--only-random SEED COUNT FILE]
"""
import argparse
import json
import random
from pathlib import Path

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = refuse
    return env


LLAMA = """{{- bos_token }}
{%- if custom is not defined %}{% set custom = false %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none and tools is defined %}
    {{- "Tools: ipython\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call only") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}<|eot_id|>" }}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN2 = """{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

QWEN3 = """{%- set ns = namespace(multi=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning is string %}
            {%- set thought = message.reasoning %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and thought)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate user/assistant") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- endif %}
{%- endfor %}
"""

SMOLLM = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are small<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

MARKED = """{% for m in messages %}
<|{{ m.role }}|>
{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|end|>
{% endgeneration %}{% else %}
{{ m.content }}<|end|>
{% endif %}
{% endfor %}"""

FAMILIES = {"llama": LLAMA, "qwen2": QWEN2, "qwen3": QWEN3, "mistral": MISTRAL, "smollm": SMOLLM, "marked": MARKED}

CONVERSATIONS = [
    [{"role": "user", "content": "Who are you?"}],
    [{"role": "system", "content": " Be short. "}, {"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"},
     {"role": "user", "content": "Zürich \u3000\n"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nA city. "}],
    [{"role": "user", "content": "Weather?"},
     {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "now", "arguments": {"at": "\"here\"", "n": [1, 2.5, None, True]}}}]},
     {"role": "tool", "content": "{\"sun\": true}"}, {"role": "assistant", "content": "Sunny"}],
    [{"role": "assistant", "content": "first"}, {"role": "assistant", "content": "second"}],
]
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]

SMALL = [
    "{{ 1 + 2 * 3 - 4 // 3 % 2 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2.5 * 2 }} {{ 1e }}",
    "{{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2.5 * 2 }} {{ 1.0 }} {{ 0.1 + 0.2 }} {{ 10 ** 2 }}",
    "{{ 'a' ~ 1 ~ true ~ none ~ [1, 'x', none] ~ {'k': \"it's\"} }}",
    "{{ x }}|{{ x is defined }}|{{ x is undefined }}|{{ x | default('d') }}|{{ '' | default('e', true) }}|{{ x | length }}",
    "{{ x.y }}", "{{ n.y }}", "{{ none.y }}", "{{ 'abc'.y }}|{{ 5 .y }}",
    "{% for i in [1,2,3] if i != 2 %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ ',' if not loop.last }}{% else %}none{% endfor %}",
    "{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{{ d | items | list }}{{ d.get('a') }}{{ d.get('q', 5) }}{{ d.keys() | list }}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
    "{% set a, b = [1, 2] %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t[1] }}",
    "{% set x %}a {{ 1 }} b\n{% endset %}[{{ x }}]",
    "  {% if true %}  \n  yes\n  {% endif %}  \n end\n\n",
    "a  {%- if true -%}  b  {%- endif +%}\n c {#- note -#} d {# note #}\n e\n  {%+ if true %}f{% endif %}",
    "{{ 'abc'[1:] }}{{ 'abc'[::-1] }}{{ 'abc'[-2] }}{{ [1,2,3][:-1] }}{{ 'häß'[1] }}{{ 'häß' | length }}{{ [1][5] }}",
    "{{ ' a b  c '.split() }}{{ 'a,b,,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ 'a\\nb\\r\\nc'.splitlines() }}",
    "{{ 'xxabxx'.strip('x') }}{{ 'xxab'.lstrip('x') }}{{ 'abxx'.rstrip('x') }}{{ '\u3000a\u00a0'.strip() }}{{ 'Ab c'.upper() }}{{ 'Ab'.lower() }}",
    "{{ 'they are'.title() }}{{ 'ABC' | capitalize }}{{ 'a-b-a'.replace('a', 'c') }}{{ 'abc'.find('c') }}{{ 'aaa'.count('a') }}",
    "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'b' in 'abc' }}{{ 2 in [1, 2] }}{{ 'a' in d }}{{ 'q' not in d }}",
    "{{ [1, 2] + [3] }}{{ (1, 2) | length }}{{ 'ab' * 2 }}{{ [1, 2] | join('-') }}{{ [1, 2] | first }}{{ [1, 2] | last }}{{ [1, 2] | reverse | list }}",
    "{{ d | tojson }}{{ d | tojson(indent=2) }}{{ 'ä\"\\n</a>' | tojson }}{{ [] | tojson(indent=1) }}{{ 1.5 | tojson }}{{ true | tojson }}",
    "{{ l | selectattr('r', 'eq', 1) | map(attribute='n') | list }}{{ l | rejectattr('r') | list | length }}{{ l | selectattr('r') | list | length }}",
    "{{ 5 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 1 is number }}{{ true is number }}{{ true is integer }}{{ 'a' is string }}{{ d is mapping }}{{ l is sequence }}{{ x is iterable }}",
    "{{ 1 == 1.0 }}{{ 1 < 2 < 3 }}{{ 'a' < 'b' }}{{ not 1 == 2 }}{{ 1 and 0 }}{{ 0 or 'x' }}{{ none is none }}{{ true is true }}",
    "{% set ns = namespace(a=1) %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% set ns.b = i %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{{ 'a' 'b' }}{{ \"q\\\"\\t\\u00e4\\\\\" }}{{ '5' | int + 1 }}{{ 'z' | int }}{{ 3.7 | int }}{{ 5 | string + 'x' }}",
    "{{ raise_exception('no ' + 'way') }}", "{{ unknown() }}", "{{ 1 + 'a' }}", "{{ 'a' + none }}", "{{ 1 < 'a' }}", "{{ 1 / 0 }}",
    "{{ d | tojson }", "{% if %}", "{% endfor %}", "{{ 1 + }}", "{% for %}{% endfor %}", "{{ 'a }}", "{% if true %}", "{# never",
    "{% if a = 1 %}x{% endif %}", "{{ x.y.z }}", "{% set x.y = 1 %}", "{{ [1, 2 }}", "{{ loop.index }}",
    "{% for i in [1, 2] %}{% for j in [3] %}{{ loop.index }}{% endfor %}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem is defined }}{% endfor %}",
    "{{ {'a': 1, 'b': [2]}['b'][0] }}{{ {'a': 1}.a }}{{ {} }}{{ {'a': {}} }}{{ () }}x",
    "a\r\nb{{ 1 }}\r\n{% if true %}\r\nc{% endif %}\n", "{{ 'a' if false }}|{{ 1 if x else 2 if d else 3 }}",
    "{{ messages | length }}{% for m in messages %}{{ m['role'] }}{{ loop.index0 }}{% endfor %}",
]
VARIABLES = {"d": {"a": 1, "b": "<ü>"}, "n": {}, "l": [{"n": "p", "r": 1}, {"n": "q", "r": 0}, {"n": "s", "r": 1}],
             "messages": CONVERSATIONS[0], "bos_token": "<s>", "eos_token": "</s>"}
UNSUPPORTED = ["{% macro f() %}{% endmacro %}", "{% include 'x' %}", "{{ 'a' | urlize }}", "{{ 1 is prime }}", "{% raw %}{% endraw %}",
               "{{ 2 ** 3 }}", "{% for i in [] recursive %}{% endfor %}", "{{ f(*[1]) }}", "{{ 'é' | upper }}"]


def random_template(draw):
    """Statements and expressions of the grammar, of values that mostly fit."""
    names = ["d", "n", "l", "messages", "x", "m", "i", "ns", "bos_token"]

    def expression(depth):
        if depth <= 0:
            return draw.choice(["1", "0", "-3", "2.5", "'a'", "'b c'", "' x '", "''", "none", "true", "[]", "[1, 'a']", "{'k': 1}"] + names)
        e = lambda: expression(depth - draw.randint(1, 2))
        kind = draw.randrange(14)
        if kind < 3:
            return f"({e()} {draw.choice(['+', '-', '//', '~', '~', '==', '!=', '<', '>=', 'in', 'not in', 'and', 'or'])} {e()})"
        if kind == 3:
            return f"(not {e()})"
        if kind < 6:
            return f"({e()} | {draw.choice(['trim', 'tojson', 'length', 'upper', 'list', 'first', 'last', 'string', 'int', 'default(7)', 'join(chr)', 'reverse', 'tojson(indent=2)', 'capitalize', 'title'])})".replace("chr", "'-'")
        if kind < 8:
            return f"({e()} is {draw.choice(['', 'not '])}{draw.choice(['defined', 'none', 'string', 'mapping', 'iterable', 'sequence', 'number', 'integer', 'boolean', 'true', 'false', 'eq 1'])})"
        if kind == 8:
            return f"({e()} if {e()} else {e()})"
        if kind == 9:
            return f"{e()}[{e()}]"
        if kind == 10:
            return f"{draw.choice(['l', 'messages', 'bos_token'])}[{draw.choice(['', '1', '-1'])}:{draw.choice(['', '2', '-1'])}]"
        if kind == 11:
            return f"{draw.choice(names)}.{draw.choice(['a', 'b', 'role', 'content', 'strip()', 'items()', 'split()', 'startswith(chr)', 'index0', 'get(chr)'])}".replace("chr", "'a'")
        return draw.choice([f"[{e()}, {e()}]", f"{{'a': {e()}}}", "messages[0].content", "messages[0]['role']"])

    def block(depth):
        text = ""
        for _ in range(draw.randint(1, 3)):
            a, b = draw.choice(["{%", "{%-", "  {%", "\n {%", "{%+"]), draw.choice(["%}", "-%}", "%}\n", "%} \n"])
            kind = draw.randrange(9) if depth > 0 else draw.randrange(3)
            if kind == 0:
                text += draw.choice([" text\n", "\n", " é ", "end"])
            elif kind < 4:
                text += draw.choice(["{{", "{{-"]) + f" {expression(3)} " + draw.choice(["}}", "-}}", "}}\n"])
            elif kind == 4:
                text += f"{a} if {expression(2)} {b}{block(depth - 1)}{a} elif {expression(1)} {b}{block(depth - 1)}{a} else {b}{block(depth - 1)}{a} endif {b}"
            elif kind == 5:
                text += f"{a} for {draw.choice(['i', 'm'])} in {draw.choice(['l', 'messages', '[1, 2, 3]', 'range(3)', expression(1)])} {b}{block(depth - 1)}{a} endfor {b}"
            elif kind == 6:
                text += f"{a} set {draw.choice(['x', 'i'])} = {expression(2)} {b}"
            elif kind == 7:
                text += f"{a} set ns = namespace(a={expression(1)}) {b}{a} set ns.b = {expression(1)} {b}"
            else:
                text += "{# note #}"
        return text

    return block(2)


def result(env, template, variables):
    try:
        return {"text": env.from_string(template).render(variables)}
    except Exception as error:  # whatever it is, a template with it has no text
        return {"error": type(error).__name__}


def case(env, template, variables):
    return {"template": template, "variables": variables, **result(env, template, variables)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only-random", nargs=3)
    arguments = parser.parse_args()
    env = environment()

    def random_cases(seed, count, errors):
        draw, found = random.Random(seed), []
        while len(found) < count:
            one = case(env, random_template(draw), VARIABLES)
            if "text" in one or errors:
                if "object at" not in one.get("text", "") and "built-in" not in one.get("text", "") and "dict_" not in one.get("text", "") and "<" not in one.get("text", "").replace("<s>", "").replace("<ü>", ""):
                    found.append(one)
        return found

    if arguments.only_random:
        seed, count, file = arguments.only_random
        Path(file).write_text(json.dumps(random_cases(int(seed), int(count), True), ensure_ascii=False))
        return
    families = []
    for name, template in FAMILIES.items():
        for messages in CONVERSATIONS:
            for more in [{}, {"add_generation_prompt": True}, {"add_generation_prompt": True, "tools": TOOLS, "enable_thinking": False}]:
                families.append(case(env, template, {"messages": messages, "bos_token": "<s>", "eos_token": "</s>", **more}))
    small = [case(env, template, VARIABLES) for template in SMALL]
    folder = Path(__file__).resolve().parent / "chat_templates"
    folder.mkdir(exist_ok=True)
    for name, template in FAMILIES.items():
        (folder / f"{name}.jinja").write_text(template)
    lines = [json.dumps(one, ensure_ascii=False) for one in families + small + random_cases(45, 150, False)]
    (folder / "cases.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    (folder / "unsupported.json").write_text(json.dumps(UNSUPPORTED, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
