#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/chat/cases.json: what Python's jinja2, set up as Hugging Face's libraries set
it up, makes of chat templates.

  {values, talks, tools, templates, cases: [...]}, where a case has `source`, rendered with `values`, or `template`,
  `talk`, `prompt` and `tools`; and `text`, or `refused` where jinja2 refuses it

Needs the package `jinja2` (3.1.6 made the stored file). Same file on every run.
"""
import json
import pathlib
import random

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "chat" / "cases.json"

CHATML = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

HEADERS = """{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- The system's message, with the date #}
{{- bos_token + "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

BRACKETS = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

THINKING = """{%- set ns = namespace(multi_step=true, last=messages|length - 1, found=0) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- macro show(role, text, end='<|im_end|>') -%}
<|im_start|>{{ role }}
{{ text }}{{ end }}
{% endmacro -%}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- show(message.role, message.content) }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or reasoning) %}
            {{- show('assistant', '<think>\\n' ~ reasoning.strip('\\n') ~ '\\n</think>\\n\\n' ~ content) }}
        {%- else %}
            {{- show(role='assistant', text=content) }}
        {%- endif %}
    {%- else %}
        {%- continue %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{ messages[0].content + '\\n\\n' }}{% endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
    {{ tools[0].function.parameters.properties.items() | list | length }}
    {%- for name, spec in tools[0].function.parameters.properties.items() if spec.type != 'object' %}
 - {{ name }} ({{ spec.type }}{% if name in tools[0].function.parameters.required %}, required{% endif %}): {{ spec.description | default('no words') }}
    {%- else %}
 none
    {%- endfor %}
{%- endif %}
{{ tools | map(attribute='function') | map(attribute='name') | join(', ') }}
{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | last }}
{{ messages | rejectattr('role', 'in', ['user', 'system']) | list | length }}"""

GENERATION = """{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}
{% else %}{{ m.role | upper }}: {{ m.content | replace('\\n', ' ') | title }}
{% endif %}{% endfor %}"""

TALKS = [
    [{"role": "user", "content": "Hello"}],
    [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "  What is 1 + 1? "},
     {"role": "assistant", "content": "2"}, {"role": "user", "content": "Größe — 日本語 😀\u00a0"}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "assistant", "content": "<think>\nhm\n</think>\n\nyes\n"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nyes\n"},
     {"role": "user", "content": "more"}, {"role": "assistant", "content": "<think>x</think>y"}],
    [{"role": "user", "content": "weather?"},
     {"role": "assistant", "content": "", "tool_calls": [
         {"function": {"name": "weather", "arguments": {"city": "Zürich", "days": [1, 2.5, None, True]}}}]},
     {"role": "tool", "content": {"sky": "a \"blue\" one\n", "n": 1e-7}}],
    [],
]
TOOL_LIST = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string", "description": "Where"}, "days": {"type": "integer"}, "more": {"type": "object"}},
    "required": ["city"]}}}, {"type": "function", "function": {"name": "time"}}]

VALUES = {"i": 7, "n": -3, "f": 2.5, "big": 1e20, "tiny": 1e-7, "t": True, "no": None, "s": "Hello, Wörld 😀\n",
          "e": "", "l": [3, "b", None, 2.0, [1]], "d": {"a": 1, "b": "x", "items": 5, "c": {"d": [1, 2]}},
          "words": ["one", "Two", "", "three"], "rows": [{"k": 1, "on": True}, {"k": 2}, {"k": 1, "on": False}]}

EXPRESSIONS = """
i + 1 ;; i - n ;; i * n ;; i / 2 ;; i // 2 ;; n // 2 ;; i % 3 ;; n % 3 ;; n % -2 ;; i ** 2 ;; -i ** 2 ;; 2 ** 3 ** 2 ;; f * 2 ;; f // 1 ;; -f % 2 ;; 7 / 7
1_000 + 1 ;; 1.5e3 ;; 2e-3 ;; 1e16 ;; 123456789.125 ;; big ;; tiny ;; 1e15 * 10 ;; 0.1 + 0.2 ;; -0.0 ;; 1.0 ;; t + 1 ;; t * 2 ;; not t ;; -t ;; +i
i == 7 ;; i == 7.0 ;; 1 == true ;; i != n ;; i < 8 <= 9 ;; i < 8 <= 7 ;; 1 < 2 < 3 ;; 'a' < 'b' ;; 'a' < 1 ;; none == false ;; no == none ;; nope == none ;; nope == nope2
i in [7, 8] ;; 'b' in l ;; 'ell' in s ;; 'a' in d ;; 'z' not in d ;; 1 in 'abc' ;; x in d ;; not i in [1] ;; i in 5 ;; none in l ;; 2 in l
no or false ;; not e ;; not (i and n) ;; i if t else n ;; i if e ;; (i if e) is defined ;; 'a' if e else 'b' if t else 'c'
s ;; s[0] ;; s[-2] ;; s[7:12] ;; s[::-1] ;; s[:3] + s[-3:] ;; s[100:] ;; s[100] ;; s[1:10:3] ;; s[5:1:-2] ;; s[-100:2] ;; s[:-100] ;; s[::0]
l ;; l[0] ;; l[-1] ;; l[9] ;; l[1:3] ;; l[::-1] ;; l[::2] ;; l[-2:] ;; l[4][0] ;; l['x'] ;; l.x ;; l[1.5] ;; [1,2,3][3:0:-1] ;; [1,2,3][5:] ;; [1,2][none:1]
d ;; d.a ;; d['b'] ;; d.c.d[1] ;; d.z ;; d.z.y ;; d['z']['y'] ;; d['c'] ;; d['items'] ;; d.get('a') ;; d.get('z') ;; d.get('z', 4)
nope ;; nope.x ;; nope['x'] ;; nope() ;; nope + 1 ;; nope ~ 'x' ;; nope | length ;; nope | upper ;; 'x' in nope ;; nope is defined ;; nope is not defined ;; nope | default('q') ;; d.q | default('r')
[] ;; [1, 'a', none, true, 1.5, "it's", 'q"q', 'b\\\\n'] ;; {} ;; {'a': [1], 'b': {}} ;; (1) ;; [1,] ;; [[1], [2]] ;; {'a': 1}['a'] ;; {'a': {'b': 2}}.a.b
'a' ~ 1 ~ none ~ 2.0 ;; 'a' 'b' ;; 'a' + 1 ;; 1 + 'a' ;; [1] + [2] ;; [1] * 3 ;; 'ab' * 2 ;; 3 * 'ab' ;; 'ab' * -1 ;; [1] + 1 ;; none + 1 ;; 'a' - 'b' ;; 1 / 0 ;; 1 // 0 ;; 1 % 0
'\\n\\t\\\\\\'"' ;; "\\"'" ;; '\\x41\\u00e9\\U0001F600' ;; '\\q'

s | upper ;; s | lower ;; s | title ;; s | capitalize ;; 'o\\'neil is x2y' | title ;; 'ÀÉ' | lower ;; 'straße' | capitalize ;; s | trim ;; '  x ' | trim ;; 'xxaxx' | trim('x') ;; s | length ;; l | length ;; d | length ;; 5 | length ;; e | count
s | replace('l', 'L') ;; s | replace('l', 'L', 1) ;; 'aaa' | replace('aa', 'b') ;; words | join ;; words | join(', ') ;; l | join('-') ;; 'abc' | join('.') ;; words | first ;; words | last ;; [] | first ;; [] | last ;; 'abc' | first ;; 'abc' | last ;; [] | first is defined
l | list ;; 'abc' | list ;; d | list ;; words | reverse | list ;; 'abc' | reverse ;; [1,2,1,3] | unique | list ;; words | map('upper') | list ;; words | map('length') | list ;; rows | map(attribute='k') | list ;; rows | map(attribute='on') | list ;; rows | map(attribute='on', default='?') | list ;; words | select | list ;; words | reject | list ;; [1,2,3,4] | select('odd') | list ;; [1,2,3,4] | reject('even') | list ;; [1,5] | select('gt', 2) | list
rows | selectattr('on') | list | length ;; rows | rejectattr('on') | list | length ;; rows | selectattr('k', 'equalto', 1) | list | length ;; rows | selectattr('on', 'defined') | list | length ;; rows | map(attribute='k') | join('/') ;; rows | selectattr('k', '==', 2) | first
nope | items | list ;; d | tojson ;; l | tojson ;; s | tojson ;; 'é<>&\\'"' | tojson ;; {'a': [1, {'b': none}], 'c': []} | tojson(indent=2) ;; [] | tojson(indent=4) ;; {'b': 1, 'a': 2} | tojson(sort_keys=true) ;; [1, 2] | tojson(separators=(',', ':')) ;; 'é😀' | tojson(ensure_ascii=true) ;; nope | tojson ;; 1.0 | tojson ;; big | tojson ;; true | tojson
'42' | int ;; '4x' | int ;; '4x' | int(7) ;; 3.9 | int ;; -3.9 | int ;; none | int(1) ;; '2.5' | float ;; 'x' | float ;; i | float ;; true | int ;; ' 12 ' | int ;; n | abs ;; -2.5 | abs ;; i | string ;; [1] | string ;; s | safe ;; none | string
'a\\nb\\n\\nc\\n' | indent ;; 'a\\nb' | indent(2, true) ;; 'a\\nb' | indent(2, first=false) ;; none | default('x') ;; none | default('x', true) ;; '' | d('y', true) ;; nope ;; d ;; false | default('z', boolean=true)
i is odd ;; i is even ;; i is divisibleby 7 ;; i is divisibleby(2) ;; i is number ;; f is number ;; t is number ;; i is integer ;; t is integer ;; t is boolean ;; f is float ;; i is float ;; s is string ;; l is mapping ;; l is iterable ;; s is iterable ;; s is sequence ;; no is none ;; nope is none ;; t is true ;; i is true ;; 1 is true ;; false is false ;; i is eq 7 ;; i is equalto(7) ;; i is ne 8 ;; i is gt 3 ;; i is lt 3 ;; i is in [7] ;; 'a' is in 'abc' ;; i is not odd ;; not i is odd ;; i is odd and t ;; i is undefined ;; nope is undefined ;; i is ge 7 ;; i is le(6)
s.strip() ;; '  a '.lstrip() ;; ' a '.rstrip() ;; 'xyax'.strip('xy') ;; '\\n\\na\\n'.lstrip('\\n') ;; s.upper() ;; s.lower() ;; 'ab cd'.title() ;; 'aB'.capitalize() ;; 'a,b,,c'.split(',') ;; 'a b  c '.split() ;; 'a,b,c'.split(',', 1) ;; 'a,b,c'.rsplit(',', 1) ;; 'abc'.split('x') ;; ''.split(',') ;; ''.split() ;; 'a'.split('') ;; 'a,b,c'.split(',')[-1]
s.startswith('He') ;; s.endswith('x') ;; 'abc'.startswith(('x', 'a')) ;; 'abc'.replace('b', 'x') ;; 'aaa'.replace('a', 'b', 2) ;; ', '.join(['a', 'b']) ;; ''.join([]) ;; 'abc'.find('c') ;; 'éabc'.find('b') ;; 'abc'.find('z') ;; 'banana'.count('an') ;; '12'.isdigit() ;; 'x1'.isdigit() ;; 'a\\nb\\n'.splitlines() ;; ', '.join([1]) ;; 'a'.nosuch() ;; d.nosuch() ;; l.append(1)
range(3) | list ;; range(1, 4) | list ;; range(5, 0, -2) | list ;; range(0) | list ;; range(3) | length ;; range(1, 2, 0) | list ;; range(3) | join(',') ;; range(2) | map('string') | list
namespace(a=1).a ;; namespace(a=1).b ;; dict(a=1, b='x') ;; (1, 2)[1] ;; (1 + 2) * 3 ;; 1 + 2 * 3 ;; 10 - 2 - 3 ;; 2 * 3 % 4 ;; 1 ~ 2 + 3 ;; 1 + 2 ~ 3 ;; 'a' ~ 'b' * 2 ;; -1 | abs ;; -i | abs ;; (-1) | abs ;; i | string | length ;; not e is defined
t and i ;; e or 'x' ;; e and 'x' ;; (range(4) | list)[1:] ;; (words | length) > 3 and t ;; l is string ;; d is mapping ;; i is iterable ;; d is iterable ;; l is sequence ;; d is sequence ;; d.keys() | list ;; d.values() | list ;; nope is none ;; i | float is float
""".strip().replace("\n", " ;; ").split(" ;; ")

STATEMENTS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in words %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }},{% endfor %}",
    "{% for x in words %}{% if loop.previtem is defined %}{{ loop.previtem }}{% endif %}{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}", "{% for x in nope %}a{% else %}none{% endfor %}",
    "{% for x in words if x %}{{ loop.index }}{{ x }}{% endfor %}", "{% for x in 5 %}a{% endfor %}",
    "{% for x in words if x == 'q' %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", "{% for (k, v) in d | items %}{{ k }}{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for c in 'aé😀' %}[{{ c }}]{% endfor %}", "{% for a, b in [1] %}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for a, b in ['xy', [3, 4]] %}{{ a }}{{ b }}{% endfor %}",
    "{% for x in range(9) %}{% if x == 5 %}{% break %}{% endif %}{% if x is odd %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1,2] %}{% for y in [3,4] %}{{ x }}{{ y }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% set x = 1 %}{% for y in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "{% if t %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(n=0) %}{% for y in [1,2,3] %}{% set ns.n = ns.n + y %}{% endfor %}{{ ns.n }}",
    "{% set ns = namespace() %}{% set ns.a = [1] %}{{ ns.a }}{{ ns.b is defined }}", "{% set d.x = 1 %}", "{% set q.x = 1 %}",
    "{% set a, b = [1, 2] %}{{ b }}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}", "{% set x %}a{{ i }}b{% endset %}[{{ x }}]{{ x | length }}",
    "{% set x = 'a', 'b' %}{{ x[1] }}", "{% if e %}1{% elif i == 7 %}2{% elif t %}3{% else %}4{% endif %}", "{% if e %}1{% elif no %}2{% else %}4{% endif %}",
    "{% if nope %}1{% endif %}2", "{% if nope is defined and nope.x %}1{% else %}2{% endif %}", "{% if nope.x %}1{% endif %}",
    "{% macro m(a, b='x') %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m() }}",
    "{% macro m(a) %}{{ i }}{{ a }}{% endmacro %}{% for i in [1] %}{{ m(i) }}{% endfor %}", "{% macro m() %}{% set i = 2 %}{{ i }}{% endmacro %}{{ m() }}{{ i }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}",
    "{% macro m(x) %}{{ x }}{% endmacro m %}{{ m('a') | upper }}", "{{ m('late') }}{% macro m(x) %}{{ x }}{% endmacro %}",
    "{{ raise_exception('no') }}", "{% if false %}{{ raise_exception('no') }}{% endif %}ok", "{# a #}b{# {{ c }} #}", "{% raw %}{{ x }}{% if %}{% endraw %}{{ i }}",
    "a{%- raw -%}  x  {%- endraw -%} b", "{{ strftime_now('') }}", "{% generation %}x{{ i }}{% endgeneration %}", "{{ 'a' if t }}{{ 'b' if e }}",
    "{{ {'a': {'b': {'c': 1}}}['a']['b'] }}", "{{ '}}' }}{{ '%}' }}", "{{ \"{{\" }}", "{ {{ i }} }", "{{i}}", "{{-i-}}", "{{ - i -}}", "a{{+i}}b", "a {{- i -}} b {%- if t -%} c {%- endif +%} d", "",
    "\n", "\n\n", "a\n", "a\n\n", "{{ i }}\n", "a\r\nb\rc\n", "  {% if t %}\n  a\n  {% endif %}\nb", "  {{ i }}\n  b", " x {% if t %}\ny{% endif %}", "{% if t +%}\nx{% endif %}", "  {%+ if t %}x{% endif %}",
    "{% if t %}\n\nx\n{% endif %}\n\ny", "\t{# c #}\nx", "{# c -#}  x", "x  {#- c #}\ny", "{{ i }}\n{{ n }}\n", "a\u00a0{%- if t %}b{% endif %}", "\u3000{{- i -}}\u3000x",
    "{% if t %}", "{% endif %}", "{{ i", "{% for x in l %}", "{{ }}", "{{ i i }}", "{% if %}a{% endif %}", "{% for in l %}{% endfor %}", "{{ 'a }}", "{{ [1, }}", "{{ (1 }}", "{{ 1 + }}", "{{ a..b }}", "{{ ) }}", "{% else %}", "{# x", "{% raw %}x", "{% break %}", "{{ i | nosuch }}", "{{ i is nosuch }}", "{% nosuch %}", "{{ $ }}", "{{ i ? 1 }}", "{% set %}", "{% set 1 = 2 %}", "{{ not }}", "{{ f(a=1, 2) }}", "{% macro m(a=1, b) %}{% endmacro %}",
]


def environment():
    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = lambda form: form
    return env


def drawn(rng):
    """White space around tags of every kind, and what the tags do."""
    spaces = ["", "", " ", "  ", "\n", "\n\n", " \n", "\n  ", "\t", "x", " x ", "x\n", "\n x"]

    def tag(open_, body, close):
        left = rng.choice(["", "", "-", "+"]) if open_ != "{{" else rng.choice(["", "-"])
        right = rng.choice(["", "", "-", "+"]) if open_ == "{%" else rng.choice(["", "-"])
        return f"{open_}{left} {body} {right}{close}"

    def body(depth):
        parts = []
        for _ in range(rng.randint(1, 4)):
            parts.append(rng.choice(spaces))
            kind = rng.randrange(6 if depth < 3 else 2)
            if kind == 0:
                parts.append(tag("{{", rng.choice(["i", "s", "e", "d.b", "loop.index", "l[1]", "words | join(' ')", "q"]), "}}"))
            elif kind == 1:
                parts.append(tag("{#", "c", "#}"))
            elif kind in (2, 3):
                parts += [tag("{%", "if " + rng.choice(["t", "e", "loop is defined and loop.first", "i > 3"]), "%}"), body(depth + 1)]
                if rng.random() < 0.5:
                    parts += [tag("{%", "else", "%}"), body(depth + 1)]
                parts.append(tag("{%", "endif", "%}"))
            elif kind == 4:
                parts += [tag("{%", "for q in " + rng.choice(["words", "[1, 2]", "[]", "d"]), "%}"), body(depth + 1), tag("{%", "endfor", "%}")]
            else:
                parts.append(tag("{%", "set q = " + rng.choice(["i", "'z'", "q"]), "%}"))
            parts.append(rng.choice(spaces))
        return "".join(parts)

    return body(0)


def drawn_raw(rng):
    """White space around raw blocks, in lines of their own and in others', and tags that are text in them."""
    outside = ["", "", " ", "\n", "\n\n", " \n", "\n  ", "\t", "x", "x\n", "\n x", "{{ i }}\n", "{# c #}\n", "{% if t %}\n{% endif %}"]
    inside = [*outside, "{%", "\n{% endif %}", "  {{ i"]

    def sign():
        return rng.choice(["", "", "-", "+"])

    parts = [rng.choice(outside)]
    for _ in range(rng.randint(1, 2)):
        parts += [rng.choice(outside), f"{{%{sign()}{rng.choice(['', ' '])}raw {rng.choice(['', '-'])}%}}", rng.choice(inside), rng.choice(inside),
                  f"{{%{sign()} endraw{rng.choice(['', ' '])}{sign()}%}}", rng.choice(outside)]
    return "".join([*parts, rng.choice(outside)])


def main():
    env = environment()
    cases = []

    def add(source, variables, case):
        try:
            case["text"] = env.from_string(source).render(**variables)
        except Exception as error:  # noqa: BLE001: whatever Python says, it is refused
            case["refused"] = type(error).__name__
        cases.append(case)

    templates = {"chatml": CHATML, "headers": HEADERS, "brackets": BRACKETS, "thinking": THINKING, "tools": TOOLS,
                 "generation": GENERATION}
    for name, source in templates.items():
        for i, talk in enumerate(TALKS):
            for prompt in [True, False]:
                for tools in [None, TOOL_LIST]:
                    variables = {"messages": talk, "add_generation_prompt": prompt, "tools": tools,
                                 "bos_token": "<s>", "eos_token": "</s>"}
                    add(source, variables, {"template": name, "talk": i, "prompt": prompt, "tools": tools is not None})
    for expression in dict.fromkeys(EXPRESSIONS):
        add("{{ " + expression + " }}", VALUES, {"source": "{{ " + expression + " }}"})
    rng, other = random.Random(5), random.Random(6)
    for source in STATEMENTS + [drawn(rng) for _ in range(300)] + [drawn_raw(other) for _ in range(150)]:
        add(source, VALUES, {"source": source})
    OUT.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"values": VALUES, "talks": TALKS, "tools": TOOL_LIST, "templates": templates}, ensure_ascii=False)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    OUT.write_text(head[:-1] + ',\n"cases":[\n' + lines + "\n]}\n", encoding="utf-8")
    print(f"{len(cases)} cases, {sum('text' in c for c in cases)} with text, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
