"""Runs the official clients of OpenAI and Anthropic.

`clients.py replies` builds replies with the clients' types and prints them. `clients.py send` reads a JSON object
`{case: base URL}` from standard input, sends the conversation of each case with the official client, and prints the
replies as the client parsed them.
"""

import json
import sys

import anthropic
import openai
from anthropic import types as at
from openai.types import CompletionUsage, CreateEmbeddingResponse, chat as ct

KEY = "sk-test-0123456789"
SCHEMA = {"type": "object", "properties": {"station": {"type": "string"}}, "required": ["station"]}
DESCRIPTION = "What arrivals does."
ARGUMENTS = '{"station": "Times Sq"}'

OPENAI_TOOLS = [
    {
        "type": "function",
        "function": {"name": "arrivals", "description": DESCRIPTION, "parameters": SCHEMA, "strict": True},
    }
]
OPENAI_MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Next train?", "name": "ana"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "arrivals", "arguments": ARGUMENTS}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "in 3 minutes"},
    {"role": "assistant", "content": "In 3 minutes."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And here?"},
            {"type": "image_url", "image_url": {"url": "https://example.com/map.png", "detail": "low"}},
        ],
    },
]
ANTHROPIC_TOOLS = [{"name": "arrivals", "description": DESCRIPTION, "input_schema": SCHEMA}]
ANTHROPIC_MESSAGES = [
    {"role": "user", "content": "Next train?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Trains.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "call_1", "name": "arrivals", "input": {"station": "Times Sq"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "in 3 minutes"}]},
    {"role": "assistant", "content": "In 3 minutes."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And here?"},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/map.png"}},
        ],
    },
]


def openai_client(url):
    return openai.OpenAI(api_key=KEY, base_url=url + "/v1", max_retries=0)


def anthropic_client(url):
    # Unlike the OpenAI client, this one adds the API version to the path.
    return anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0)


def parse_completion(completion):
    choice = completion.choices[0]
    return {
        "text": choice.message.content or "",
        "calls": [[c.id, c.function.name, c.function.arguments] for c in choice.message.tool_calls or []],
        "tokens": [completion.usage.prompt_tokens, completion.usage.completion_tokens],
        "model": completion.model,
    }


def parse_message(message):
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "calls": [[b.id, b.name, json.dumps(b.input)] for b in message.content if b.type == "tool_use"],
        "tokens": [message.usage.input_tokens, message.usage.output_tokens],
        "model": message.model,
        "thoughts": [b.model_dump() for b in message.content if b.type == "thinking"],
    }


def openai_whole(url):
    return parse_completion(
        openai_client(url).chat.completions.create(
            model="gpt-4o-mini",
            messages=OPENAI_MESSAGES,
            tools=OPENAI_TOOLS,
            tool_choice="required",
            temperature=0.25,
            max_completion_tokens=500,
        )
    )


def openai_stream(url):
    with openai_client(url).chat.completions.stream(
        model="gpt-4o-mini",
        messages=OPENAI_MESSAGES,
        tools=OPENAI_TOOLS,
        tool_choice={"type": "function", "function": {"name": "arrivals"}},
        stream_options={"include_usage": True},
    ) as stream:
        return parse_completion(stream.get_final_completion())


PLACE_SCHEMA = {
    "type": "object",
    "properties": {"at": {"type": "string"}},
    "required": ["at"],
    "additionalProperties": False,
}


def openai_json_schema(url):
    return parse_completion(
        openai_client(url).chat.completions.create(
            model="gpt-4o-mini",
            messages=OPENAI_MESSAGES,
            tools=OPENAI_TOOLS,
            response_format={"type": "json_schema", "json_schema": {"name": "place", "schema": PLACE_SCHEMA, "strict": True}},
            parallel_tool_calls=False,
            reasoning_effort="low",
            top_p=0.5,
            frequency_penalty=0.25,
            presence_penalty=-0.5,
            seed=7,
            stop=["END"],
            logit_bias={"50256": -100},
            verbosity="low",
        )
    )


def groq_stream(url):
    stream = openai_client(url).chat.completions.create(
        model="gpt-4o-mini",
        messages=[{"role": "user", "content": "Hi"}],
        max_tokens=500,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    usage = chunks[-1].usage
    return {
        "text": text,
        "calls": None,
        "tokens": [usage.prompt_tokens, usage.completion_tokens],
        "model": chunks[0].model,
    }


def anthropic_whole(url):
    return parse_message(
        anthropic_client(url).messages.create(
            model="claude-sonnet-5-5",
            max_tokens=500,
            system="Be brief.",
            messages=ANTHROPIC_MESSAGES,
            tools=ANTHROPIC_TOOLS,
            tool_choice={"type": "any"},
        )
    )


def anthropic_json_schema(url):
    return parse_message(
        anthropic_client(url).messages.create(
            model="claude-sonnet-5-5",
            max_tokens=16384,
            system="Be brief.",
            messages=ANTHROPIC_MESSAGES,
            tools=ANTHROPIC_TOOLS,
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            output_config={"format": {"type": "json_schema", "schema": PLACE_SCHEMA}, "effort": "low"},
            stop_sequences=["END"],
        )
    )


def anthropic_stream(url):
    # `stream` sends the same request as `create(stream=True)` and also assembles the message.
    with anthropic_client(url).messages.stream(
        model="claude-sonnet-5-5",
        max_tokens=16384,
        system="Be brief.",
        messages=ANTHROPIC_MESSAGES,
        tools=ANTHROPIC_TOOLS,
        tool_choice={"type": "tool", "name": "arrivals"},
    ) as stream:
        return parse_message(stream.get_final_message())


def embeddings(url):
    answer = openai_client(url).embeddings.create(
        input=["one", "two"], model="text-embedding-3-small", encoding_format="float", dimensions=2
    )
    return {"vectors": [entry.embedding for entry in answer.data]}


CASES = {
    "openai_whole": openai_whole,
    "openai_stream": openai_stream,
    "openai_json_schema": openai_json_schema,
    "groq_stream": groq_stream,
    "anthropic_whole": anthropic_whole,
    "anthropic_json_schema": anthropic_json_schema,
    "anthropic_stream": anthropic_stream,
    "embeddings": embeddings,
}


def sse_event(model):
    return "data: " + model.model_dump_json(exclude_unset=True) + "\n\n"


def named_sse_event(model):
    return "event: " + model.type + "\n" + sse_event(model)


def openai_replies():
    function = {"name": "arrivals", "arguments": ARGUMENTS}
    call = ct.ChatCompletionMessageFunctionToolCall(id="call_2", type="function", function=function)
    usage = CompletionUsage(prompt_tokens=100, completion_tokens=20, total_tokens=120)
    message = ct.ChatCompletionMessage(role="assistant", content="Once more.", tool_calls=[call])
    whole = ct.ChatCompletion(
        id="chatcmpl-1",
        object="chat.completion",
        created=1,
        model="gpt-4o-mini-2024-07-18",
        choices=[{"index": 0, "finish_reason": "tool_calls", "message": message, "logprobs": None}],
        usage=usage,
    )

    def chunk(delta, finish=None, choices=None, usage=None):
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if choices is None else choices
        return ct.ChatCompletionChunk(
            id="chatcmpl-1",
            object="chat.completion.chunk",
            created=1,
            model="gpt-4o-mini-2024-07-18",
            choices=choices,
            usage=usage,
        )

    def piece(**function):
        return {"tool_calls": [{"index": 0, "function": function}]}

    first_piece = {"index": 0, "id": "call_2", "type": "function", "function": {"name": "arrivals", "arguments": ""}}
    text_chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Once "}),
        chunk({"content": "more."}),
    ]
    call_chunks = [chunk({"tool_calls": [first_piece]}), chunk(piece(arguments=ARGUMENTS[:9])), chunk(piece(arguments=ARGUMENTS[9:]))]
    usage_chunk = chunk({}, choices=[], usage=usage)
    done = "data: [DONE]\n\n"
    return {
        "openai_whole": whole.model_dump_json(exclude_unset=True),
        "openai_json_schema": whole.model_dump_json(exclude_unset=True),
        "openai_stream": "".join(map(sse_event, [*text_chunks, *call_chunks, chunk({}, "tool_calls"), usage_chunk])) + done,
        "groq_stream": "".join(map(sse_event, [*text_chunks, chunk({}, "stop"), usage_chunk])) + done,
    }


def anthropic_replies():
    block = at.ToolUseBlock(type="tool_use", id="toolu_2", name="arrivals", input={"station": "Times Sq"})

    def message(content, stop_reason, output_tokens):
        return at.Message(
            id="msg_1",
            type="message",
            role="assistant",
            model="claude-sonnet-5-5",
            content=content,
            stop_reason=stop_reason,
            stop_sequence=None,
            usage=at.Usage(input_tokens=100, output_tokens=output_tokens),
        )

    def start(index, block):
        return at.RawContentBlockStartEvent(type="content_block_start", index=index, content_block=block)

    def delta(index, delta):
        return at.RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta)

    def stop(index):
        return at.RawContentBlockStopEvent(type="content_block_stop", index=index)

    def piece(text):
        return at.InputJSONDelta(type="input_json_delta", partial_json=text)

    thinking = at.ThinkingBlock(type="thinking", thinking="Hm.", signature="c2ln")
    text = at.TextBlock(type="text", text="Once more.")
    finish = {"stop_reason": "tool_use", "stop_sequence": None}
    events = [
        at.RawMessageStartEvent(type="message_start", message=message([], None, 1)),
        start(0, at.ThinkingBlock(type="thinking", thinking="", signature="")),
        delta(0, at.ThinkingDelta(type="thinking_delta", thinking="Hm.")),
        delta(0, at.SignatureDelta(type="signature_delta", signature="c2ln")),
        stop(0),
        start(1, at.TextBlock(type="text", text="")),
        delta(1, at.TextDelta(type="text_delta", text="Once ")),
        delta(1, at.TextDelta(type="text_delta", text="more.")),
        stop(1),
        start(2, block.model_copy(update={"input": {}})),
        delta(2, piece(ARGUMENTS[:9])),
        delta(2, piece(ARGUMENTS[9:])),
        stop(2),
        at.RawMessageDeltaEvent(type="message_delta", delta=finish, usage=at.MessageDeltaUsage(output_tokens=20)),
        at.RawMessageStopEvent(type="message_stop"),
    ]
    whole = message([thinking, text, block], "tool_use", 20).model_dump_json(exclude_unset=True)
    return {
        "anthropic_whole": whole,
        "anthropic_json_schema": whole,
        "anthropic_stream": "".join(map(named_sse_event, events)),
    }


def embedding_replies():
    entries = [
        {"object": "embedding", "index": 0, "embedding": [0.5, -0.25]},
        {"object": "embedding", "index": 1, "embedding": [0.0, 1.0]},
    ]
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    answer = CreateEmbeddingResponse(object="list", data=entries, model="text-embedding-3-small", usage=usage)
    return {"embeddings": answer.model_dump_json(exclude_unset=True)}


if sys.argv[1] == "replies":
    print(json.dumps({**openai_replies(), **anthropic_replies(), **embedding_replies()}))
else:
    print(json.dumps({case: CASES[case](url) for case, url in json.load(sys.stdin).items()}))
