# SPDX-License-Identifier: Apache-2.0
"""What OpenAI's own Python client makes of the server: scripts/setup puts it into .deps/openai."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", ".deps", "openai"))
try:
    import openai
except ImportError:
    openai = None


def client_of(port, key="none"):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0, timeout=120)


def check_completions(port, model, prompt, tokens, expected):
    client = client_of(port)
    assert [m.id for m in client.models.list()] == [model]
    asked = dict(model=model, prompt=prompt, max_tokens=tokens, temperature=0)
    answer = client.completions.create(**asked, logprobs=2)
    assert answer.choices[0].text == expected, answer
    assert len(answer.choices[0].logprobs.top_logprobs) == answer.usage.completion_tokens
    pieces = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].text for c in pieces if c.choices) == expected
    assert pieces[-1].usage == answer.usage
    seeded = dict(model=model, prompt=prompt, max_tokens=8, temperature=1, seed=7, n=3)
    first, again = (client.completions.create(**seeded) for _ in range(2))
    assert [c.text for c in first.choices] == [c.text for c in again.choices] and len(first.choices) == 3
    # A reader who leaves: the text ends, and the next one is answered.
    with client.completions.create(**{**asked, "max_tokens": 200}, stream=True) as stream:
        next(iter(stream))
    assert client.completions.create(**asked).choices[0].text == expected
    for wrong, kind in ((dict(temperature=-1), openai.BadRequestError), (dict(max_tokens=0), openai.BadRequestError)):
        try:
            client.completions.create(**{**asked, **wrong})
            raise AssertionError(f"{wrong} was taken")
        except kind as error:
            assert error.status_code == 400 and error.type == "invalid_request_error", error


def check_key(port, key):
    try:
        client_of(port, "wrong").models.list()
        raise AssertionError("a wrong key was taken")
    except openai.AuthenticationError as error:
        assert error.status_code == 401
    assert len(client_of(port, key).models.list().data) == 1


def check_chat(port, model, messages, tokens, expected):
    client = client_of(port)
    asked = dict(model=model, messages=messages, max_completion_tokens=tokens, temperature=0)
    answer = client.chat.completions.create(**asked)
    assert answer.choices[0].message.role == "assistant" and answer.choices[0].message.content == expected, answer
    pieces = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in pieces if c.choices) == expected
    assert pieces[-1].choices[0].finish_reason == answer.choices[0].finish_reason
