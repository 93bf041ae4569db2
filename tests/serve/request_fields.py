# SPDX-License-Identifier: Apache-2.0
"""Every field of a request to /v1: what is taken, and what is refused with which status and words.

A row is (field, value, words) or (field, value, words, param, code): without words the request is answered. `param`
and `code` are those of the error's body; a value that is no JSON of the field's type has none.
"""
import json

UNSUPPORTED = "unsupported_parameter"


def unsupported(field, value):
    return (field, value, f"the field '{field}' is not supported", field, UNSUPPORTED)


def out_of(field, low, high, *values):
    words = f"{field}: expected a number from {low:.6f} to {high:.6f}, got "
    return [(field, value, words + (f"{value:g}" if isinstance(value, float) else str(value)), field) for value in values]


def whole_out_of(field, low, high, *values):
    return [(field, value, f"request: {field}: expected an integer from {low} to {high}, got {value}") for value in values]


def of_another_type(field, expected, *values):
    return [(field, value, f"request: {field}: expected {expected}") for value in values]


def common(model, most_tokens=4096, most_choices=32):
    """Of both routes that write a text."""
    return [
        ("model", model, None), ("model", None, None), *of_another_type("model", "a string", 5, ["x"]),
        ("stream", False, None), ("stream", None, None), *of_another_type("stream", "true or false", "yes", 1),
        ("n", 1, None), ("n", most_choices, None), ("n", None, None),
        *whole_out_of("n", 1, most_choices, 0, -1, most_choices + 1),
        *of_another_type("n", "an integer", 1.5, "2", True),
        ("max_tokens", 2, None), ("max_tokens", None, None),
        *whole_out_of("max_tokens", 1, most_tokens, 0, most_tokens + 1),
        ("temperature", 0, None), ("temperature", 100, None), ("temperature", 0.5, None), ("temperature", None, None),
        *out_of("temperature", 0, 100, -0.5, 101), *of_another_type("temperature", "a number", "hot", True, [1]),
        ("top_p", 0, None), ("top_p", 1, None), *out_of("top_p", 0, 1, -0.5, 1.5),
        *of_another_type("top_p", "a number", "1"),
        ("top_k", 0, None), ("top_k", 2**31 - 1, None), *whole_out_of("top_k", 0, 2**31 - 1, -1, 2**31),
        ("min_p", 0.25, None), *out_of("min_p", 0, 1, -0.5, 1.5),
        ("presence_penalty", -2, None), ("presence_penalty", 2, None), *out_of("presence_penalty", -2, 2, -2.5, 2.5),
        ("frequency_penalty", -2, None), ("frequency_penalty", 2, None), *out_of("frequency_penalty", -2, 2, -2.5, 2.5),
        ("repetition_penalty", 1.5, None), *out_of("repetition_penalty", 0.001, 1000, 0, -1, 1001),
        ("seed", 7, None), ("seed", -7, None), ("seed", 0, None), *of_another_type("seed", "an integer", 1.5, "7"),
        ("stop", "x", None), ("stop", [], None), ("stop", ["x", "y"], None), ("stop", None, None),
        ("stop", [""], "expected a stop text, got an empty one"),
        ("stop", "", "expected a stop text, got an empty one"),
        ("stop", ["x"] * 17, "stop: expected at most 16 texts", "stop"),
        ("stop", ["x", 5], "request: stop[1]: expected a string"),
        ("stop", {}, "request: stop: expected an array, got an object"), ("stop", 5, "request: stop: expected an array, got 5"),
        ("regex", "ab?", None), ("regex", "(", 'pattern "(": character 1: expected a ) to end the group'),
        *of_another_type("regex", "a string", 5),
        ("response_format", {"type": "text"}, None), ("response_format", {"type": "json_object"}, None),
        ("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "integer"}}}, None),
        ("response_format", {"type": "xml"},
         'response_format.type: expected text, json_object or json_schema, got "xml"',
         "response_format.type"),
        ("response_format", {}, 'request: response_format: the key "type" is missing'),
        ("response_format", {"type": "json_schema"}, 'request: response_format: the key "json_schema" is missing'),
        # They change no text.
        ("user", "me", None), *of_another_type("user", "a string", 5), ("metadata", {"a": "b"}, None),
        ("service_tier", "auto", None), ("safety_identifier", "x", None), ("prompt_cache_key", "x", None),
        # What a client sends for a field that it does not use, and what asks for something.
        ("store", False, None), unsupported("store", True), ("echo", False, None), unsupported("echo", True),
        ("echo", None, None), unsupported("echo", 0), ("best_of", 1, None), unsupported("best_of", 2),
        unsupported("best_of", "1"), ("tool_choice", "none", None), unsupported("tool_choice", "auto"),
        ("tools", [], None),
        ("tools", None, None), unsupported("tools", [{"type": "function"}]), ("logit_bias", {}, None),
        unsupported("logit_bias", {"5": 1}), ("suffix", None, None), unsupported("suffix", "x"),
        unsupported("suffix", ""),
        unsupported("best_off", 3), unsupported("parallel_tool_calls", True), unsupported("stream_option", False),
        # stream_options belongs to a stream.
        ("stream_options", {"include_usage": True}, "stream_options needs stream: true", "stream_options"),
        ("stream_options", None, None),
    ]


def of_completions():
    return [
        ("prompt", "a", None), ("prompt", ["a", "b"], None), ("prompt", [5, 6], None), ("prompt", [[5, 6], "a"], None),
        ("prompt", [], "prompt: expected a text, a list of texts or a list of token ids, got an array", "prompt"),
        ("prompt", 5, "prompt: expected a text, a list of texts or a list of token ids, got 5", "prompt"),
        ("prompt", {}, "prompt: expected a text, a list of texts or a list of token ids, got an object", "prompt"),
        *[("prompt", [id], f"request: prompt[0]: expected an integer from 0 to 767, got {id}") for id in (-1, 768)],
        ("prompt", [767], None),
        ("prompt", [5, 1.5], "request: prompt[1]: expected an integer"),
        ("prompt", ["a", 5], "request: prompt[1]: expected a string"),
        ("prompt", [[]], "the prompt has no tokens", "prompt"),
        ("logprobs", 0, None), ("logprobs", 20, None), ("logprobs", None, None),
        *whole_out_of("logprobs", 0, 20, -1, 21),
        *of_another_type("logprobs", "an integer", True, "2"),
        # Fields of the other route.
        unsupported("top_logprobs", 2), unsupported("max_completion_tokens", 2),
        unsupported("messages", [{"role": "user", "content": "a"}]),
    ]


def message(**fields):
    return [{"role": "user", "content": "a", **fields}]


def of_chat():
    return [
        ("messages", message(), None), ("messages", message(name="me"), None), ("messages", message(name=None), None),
        ("messages", message(refusal=None, tool_calls=[]), None),
        ("messages", message(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), None),
        ("messages", [], "messages: expected a list of at least one message", "messages"),
        ("messages", "a", "messages: expected a list of at least one message", "messages"),
        ("messages", message(tool_calls=[1]), "messages[0].tool_calls is not supported",
         "messages[0].tool_calls", UNSUPPORTED),
        ("messages", message(weight=1), "messages[0].weight is not supported", "messages[0].weight", UNSUPPORTED),
        ("messages", [{"content": "a"}], 'request: messages[0]: the key "role" is missing'),
        ("messages", [{"role": "user"}], 'request: messages[0]: the key "content" is missing'),
        ("messages", message(role=5), "request: messages[0].role: expected a string"),
        ("messages", message(content={}), "request: messages[0].content: expected an array, got an object"),
        ("messages", message(content=[{"type": "image_url", "image_url": "x"}]),
         'messages[0].content[0].type: expected "text", got "image_url"',
         "messages[0].content[0].type", UNSUPPORTED),
        # Likeliest tokens belong to log-probabilities.
        ("logprobs", True, None), ("logprobs", False, None), ("logprobs", None, None),
        *of_another_type("logprobs", "true or false", 2, "yes"),
        ("top_logprobs", 3, "top_logprobs needs logprobs: true", "top_logprobs"), ("top_logprobs", 0, None),
        ("top_logprobs", None, None),
        *whole_out_of("top_logprobs", 0, 20, -1, 21), *of_another_type("top_logprobs", "an integer", True, "2"),
        ("max_completion_tokens", 2, None), *whole_out_of("max_completion_tokens", 1, 4096, 0, 4097),
        # A field of the other route.
        unsupported("prompt", "a"),
    ]


def of_embeddings(model, width):
    return [
        ("model", model, None), *of_another_type("model", "a string", 5), ("input", ["a", "b"], None),
        ("user", "me", None),
        ("input", [], "input: expected a text or from 1 to 512 texts", "input"),
        ("input", 5, "input: expected a text or from 1 to 512 texts", "input"),
        ("input", ["a"] * 513, "input: expected a text or from 1 to 512 texts", "input"),
        ("input", ["a", 5], "request: input[1]: expected a string"),
        ("encoding_format", "float", None), ("encoding_format", "base64", None),
        ("encoding_format", "hex", 'encoding_format: expected float or base64, got "hex"', "encoding_format"),
        ("dimensions", width, None),
        ("dimensions", width + 1, f"dimensions: the model has {width}, got {width + 1}", "dimensions"),
        unsupported("best_of", 1), unsupported("stream", False),
    ]


def check(server, route, base, rows, **together):
    """`together`: fields beside the one of a row."""
    for field, value, words, *told in rows:
        status, _, text = server.ask("POST", route, {**base, **together, field: value})
        case = (route, field, value, status, text[:300])
        if words is None:
            assert status == 200, case
            continue
        error = json.loads(text)["error"]
        param, code = [*told, None, None][:2]
        assert status == 400 and error["message"].startswith(words), case
        assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code), case


def check_completions(server, model):
    base = {"prompt": "a", "max_tokens": 1}
    check(server, "/v1/completions", base, common(model) + of_completions())
    check_others(server, "/v1/completions", base)


def check_chat(server, model):
    base = {"messages": message(), "max_tokens": 1}
    check(server, "/v1/chat/completions", base, common(model) + of_chat())
    check(server, "/v1/chat/completions", base, [("top_logprobs", 0, None), ("top_logprobs", 20, None)], logprobs=True)
    needs = "top_logprobs needs logprobs: true"
    for logprobs in (False, None):
        check(server, "/v1/chat/completions", base, [("top_logprobs", 1, needs, "top_logprobs")], logprobs=logprobs)
    # Of both limits the newer one counts, whichever is larger.
    for new, old in ((2, 5), (5, 2)):
        body = {**base, "max_completion_tokens": new, "max_tokens": old, "regex": "[ab]{20}", "temperature": 0}
        usage = json.loads(server.ask("POST", "/v1/chat/completions", body)[2])["usage"]
        assert usage["completion_tokens"] == new, (new, old, usage)
    check_others(server, "/v1/chat/completions", base)


def check_others(server, route, base):
    """What a row of one field does not show."""
    stream = {"stream": True}
    taken = ({"include_usage": True}, {"include_usage": False}, {}, {"include_obfuscation": False})
    check(server, route, base, [("stream_options", value, None) for value in taken], **stream)
    refused = [({"include_obfuscation": True}, "include_obfuscation"), ({"usage": True}, "usage")]
    check(server, route, base, [("stream_options", value, f"stream_options.{key} is not supported",
     "stream_options", UNSUPPORTED)
                                for value, key in refused], **stream)
    excluded = "regex and response_format exclude each other"
    check(server, route, base, [("response_format", {"type": "text"}, excluded, "regex")], regex="a")
    status, _, text = server.ask("POST", route, {**base, "model": "other"})
    error = json.loads(text)["error"]
    assert (status, error["param"], error["code"]) == (404, "model", "model_not_found"), (status, text)
    status, _, text = server.ask("GET", "/v1/models", headers={"Origin": "http://evil.example"})
    assert (status, json.loads(text)["error"]["type"]) == (403, "permission_error"), text


def check_embeddings(server, model, width):
    check(server, "/v1/embeddings", {"input": "a"}, of_embeddings(model, width))
