"""Runs the official clients of OpenAI and Anthropic.

`clients.py replies` prints replies that are built with the clients' types. `clients.py send` reads
`{case: base URL}` from its input, sends each case's conversation with the clients, and prints the parsed replies.
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
            {"type": "image_url", "image_url": {"url": "https://example.com/map.png"}},
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
    # This client adds the version to the path.
    return anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0)


def of_completion(completion):
    choice = completion.choices[0]
    return {
        "text": choice.message.content or "",
        "calls": [[c.id, c.function.name, c.function.arguments] for c in choice.message.tool_calls or []],
        "tokens": [completion.usage.prompt_tokens, completion.usage.completion_tokens],
        "model": completion.model,
    }


def of_message(message):
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "calls": [[b.id, b.name, json.dumps(b.input)] for b in message.content if b.type == "tool_use"],
        "tokens": [message.usage.input_tokens, message.usage.output_tokens],
        "model": message.model,
        "thoughts": [b.model_dump() for b in message.content if b.type == "thinking"],
    }


def openai_whole(url):
    return of_completion(
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
        return of_completion(stream.get_final_completion())


PLACE = {
    "type": "object",
    "properties": {"at": {"type": "string"}},
    "required": ["at"],
    "additionalProperties": False,
}


def openai_formed(url):
    return of_completion(
        openai_client(url).chat.completions.create(
            model="gpt-4o-mini",
            messages=OPENAI_MESSAGES,
            tools=OPENAI_TOOLS,
            response_format={"type": "json_schema", "json_schema": {"name": "place", "schema": PLACE, "strict": True}},
            parallel_tool_calls=False,
            reasoning_effort="low",
            top_p=0.5,
            frequency_penalty=0.25,
            presence_penalty=-0.5,
            seed=7,
            stop=["END"],
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
    return of_message(
        anthropic_client(url).messages.create(
            model="claude-sonnet-5-5",
            max_tokens=500,
            system="Be brief.",
            messages=ANTHROPIC_MESSAGES,
            tools=ANTHROPIC_TOOLS,
            tool_choice={"type": "any"},
        )
    )


def anthropic_formed(url):
    return of_message(
        anthropic_client(url).messages.create(
            model="claude-sonnet-5-5",
            max_tokens=16384,
            system="Be brief.",
            messages=ANTHROPIC_MESSAGES,
            tools=ANTHROPIC_TOOLS,
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            output_config={"format": {"type": "json_schema", "schema": PLACE}, "effort": "low"},
            stop_sequences=["END"],
        )
    )


def anthropic_stream(url):
    # The stream manager sends the same request and assembles the message.
    with anthropic_client(url).messages.stream(
        model="claude-sonnet-5-5",
        max_tokens=16384,
        system="Be brief.",
        messages=ANTHROPIC_MESSAGES,
        tools=ANTHROPIC_TOOLS,
        tool_choice={"type": "tool", "name": "arrivals"},
    ) as stream:
        return of_message(stream.get_final_message())


def embeddings(url):
    answer = openai_client(url).embeddings.create(
        input=["one", "two"], model="text-embedding-3-small", encoding_format="float", dimensions=2
    )
    return {"points": [entry.embedding for entry in answer.data]}


CASES = {
    "openai_whole": openai_whole,
    "openai_stream": openai_stream,
    "openai_formed": openai_formed,
    "groq_stream": groq_stream,
    "anthropic_whole": anthropic_whole,
    "anthropic_formed": anthropic_formed,
    "anthropic_stream": anthropic_stream,
    "embeddings": embeddings,
}


def data(model):
    return "data: " + model.model_dump_json(exclude_unset=True) + "\n\n"


def named(model):
    return "event: " + model.type + "\n" + data(model)


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

    begin = {"index": 0, "id": "call_2", "type": "function", "function": {"name": "arrivals", "arguments": ""}}
    words = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Once "}),
        chunk({"content": "more."}),
    ]
    calls = [chunk({"tool_calls": [begin]}), chunk(piece(arguments=ARGUMENTS[:9])), chunk(piece(arguments=ARGUMENTS[9:]))]
    last = chunk({}, choices=[], usage=usage)
    done = "data: [DONE]\n\n"
    return {
        "openai_whole": whole.model_dump_json(exclude_unset=True),
        "openai_formed": whole.model_dump_json(exclude_unset=True),
        "openai_stream": "".join(map(data, [*words, *calls, chunk({}, "tool_calls"), last])) + done,
        "groq_stream": "".join(map(data, [*words, chunk({}, "stop"), last])) + done,
    }


def anthropic_replies():
    block = at.ToolUseBlock(type="tool_use", id="toolu_2", name="arrivals", input={"station": "Times Sq"})

    def message(content, reason, output):
        return at.Message(
            id="msg_1",
            type="message",
            role="assistant",
            model="claude-sonnet-5-5",
            content=content,
            stop_reason=reason,
            stop_sequence=None,
            usage=at.Usage(input_tokens=100, output_tokens=output),
        )

    def start(index, block):
        return at.RawContentBlockStartEvent(type="content_block_start", index=index, content_block=block)

    def delta(index, delta):
        return at.RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta)

    def stop(index):
        return at.RawContentBlockStopEvent(type="content_block_stop", index=index)

    def piece(text):
        return at.InputJSONDelta(type="input_json_delta", partial_json=text)

    thought = at.ThinkingBlock(type="thinking", thinking="Hm.", signature="c2ln")
    words = at.TextBlock(type="text", text="Once more.")
    end = {"stop_reason": "tool_use", "stop_sequence": None}
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
        at.RawMessageDeltaEvent(type="message_delta", delta=end, usage=at.MessageDeltaUsage(output_tokens=20)),
        at.RawMessageStopEvent(type="message_stop"),
    ]
    whole = message([thought, words, block], "tool_use", 20).model_dump_json(exclude_unset=True)
    return {
        "anthropic_whole": whole,
        "anthropic_formed": whole,
        "anthropic_stream": "".join(map(named, events)),
    }


def embedding_replies():
    points = [
        {"object": "embedding", "index": 0, "embedding": [0.5, -0.25]},
        {"object": "embedding", "index": 1, "embedding": [0.0, 1.0]},
    ]
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    answer = CreateEmbeddingResponse(object="list", data=points, model="text-embedding-3-small", usage=usage)
    return {"embeddings": answer.model_dump_json(exclude_unset=True)}


if sys.argv[1] == "replies":
    print(json.dumps({**openai_replies(), **anthropic_replies(), **embedding_replies()}))
else:
    print(json.dumps({case: CASES[case](url) for case, url in json.load(sys.stdin).items()}))
