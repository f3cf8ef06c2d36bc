"""Calls a server with the official Python client. Prints JSON, which the tests in clients.rs check."""

import asyncio
import json
import sys

import openai
import pydantic

PART, BASE, INPUT = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
LOOK = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}


def client():
    return openai.OpenAI(base_url=BASE, max_retries=3)


def user(text):
    return {"role": "user", "content": text}


def text_of(item):
    return item.content[0].text


def status_of(call):
    try:
        call()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code]


def items():
    api = client()
    conversation = api.conversations.create(metadata={"topic": "trains"})
    threads = lambda topic: api.get("/threads", cast_to=object, options={"params": {"metadata": {"topic": topic}}})["data"]
    assert ["conv_" + thread["id"].replace("-", "") for thread in threads("trains")] == [conversation.id]
    assert threads("boats") == []
    texts = [f"item {number}" for number in range(INPUT["items"])]
    for first in range(0, len(texts), 20):
        added = api.conversations.items.create(conversation.id, items=[user(text) for text in texts[first : first + 20]])
        assert [text_of(item) for item in added.data] == texts[first : first + 20]
    listed = lambda order: list(api.conversations.items.list(conversation.id, order=order, limit=100))
    ascending, descending = listed("asc"), listed("desc")
    # Pages of the default size contain the same items.
    assert [item.id for item in api.conversations.items.list(conversation.id, order="asc")] == [item.id for item in ascending]
    assert api.conversations.items.retrieve(ascending[7].id, conversation_id=conversation.id) == ascending[7]
    assert api.conversations.items.delete(ascending[-1].id, conversation_id=conversation.id).id == conversation.id
    errors = [
        status_of(lambda: api.conversations.items.retrieve(ascending[-1].id, conversation_id=conversation.id)),
        status_of(lambda: api.conversations.items.list(conversation.id, limit=1000)),
    ]
    remaining = len(listed("asc"))
    api.conversations.delete(conversation.id)
    errors.append(status_of(lambda: api.conversations.retrieve(conversation.id)))
    return {
        "ascending": [text_of(item) for item in ascending],
        "descending": [text_of(item) for item in descending],
        "after_deletion": remaining,
        "errors": errors,
    }


def model():
    api = client()
    tool = {"type": "function", "name": "look", "parameters": LOOK, "strict": True}
    chat_tool = {"type": "function", "function": {"name": "look", "parameters": LOOK}}
    response = api.responses.create(model="echo", input="hello")
    with api.responses.stream(model="echo", input="hello") as stream:
        streamed = stream.get_final_response().output_text
    called = api.responses.create(model="echo", input="call", tools=[tool])
    call = called.output[0]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "in 3 minutes"}
    after = api.responses.create(model="echo", input=[output], previous_response_id=called.id, tools=[tool])
    assert api.responses.retrieve(after.id).output_text == after.output_text
    assert [item.call_id for item in api.responses.input_items.list(after.id)] == [call.call_id]
    chat = api.chat.completions.create(model="echo", messages=[user("hello")])
    with api.chat.completions.stream(model="echo", messages=[user("hello")]) as stream:
        streamed_chat = stream.get_final_completion().choices[0].message.content
    chat_call = api.chat.completions.create(model="echo", messages=[user("call")], tools=[chat_tool])
    chat_call = chat_call.choices[0].message.tool_calls[0].function
    with api.chat.completions.stream(model="echo", messages=[user("call")], tools=[chat_tool]) as stream:
        streamed_call = stream.get_final_completion().choices[0].message.tool_calls[0].function
    return {
        "models": [model.id for model in api.models.list()],
        "embedding": api.embeddings.create(model="lengths", input="hello").data[0].embedding,
        "response": response.output_text,
        "streamed_response": streamed,
        "response_call": [call.name, call.arguments],
        "after_call": after.output_text,
        "chat": chat.choices[0].message.content,
        "streamed_chat": streamed_chat,
        "chat_call": [chat_call.name, chat_call.arguments],
        "streamed_call": [streamed_call.name, streamed_call.arguments],
        "total_tokens": chat.usage.total_tokens,
    }


def lossy():
    api = client()
    all_of = lambda id: [text_of(item) for item in api.conversations.items.list(id, order="asc")]
    one = api.conversations.create(items=[])
    texts = [f"item {number}" for number in range(INPUT["items"])]
    for first in range(0, len(texts), 3):
        api.conversations.items.create(one.id, items=[user(text) for text in texts[first : first + 3]])
    two, answers = api.conversations.create(items=[]), []
    for turn in range(INPUT["turns"]):
        answers.append(api.responses.create(model="echo", input=f"turn {turn}", conversation=two.id).output_text)
    three = api.conversations.create(items=[])
    for turn in range(INPUT["turns"]):
        headers = {"threadkeep-thread": three.id}
        api.chat.completions.create(model="echo", messages=[user(f"turn {turn}")], extra_headers=headers)
    four = api.conversations.create(items=[])
    for _ in range(4):
        api.conversations.items.create(four.id, items=[user("yes")])
    return {
        "items": all_of(one.id),
        "turns": all_of(two.id),
        "answers": answers,
        "chat": all_of(three.id),
        "yes": all_of(four.id),
    }


def assistants():
    api, keeper = client(), "threadkeep/keeper"
    in_thread = {"threadkeep-thread": api.conversations.create(items=[]).id}
    turns = []
    for turn in range(INPUT["turns"]):
        answer = api.chat.completions.create(model=keeper, messages=[user(f"turn {turn}")], extra_headers=in_thread)
        turns.append(answer.choices[0].message.content)
    with api.chat.completions.stream(model=keeper, messages=[user("hello")]) as stream:
        streamed_chat = stream.get_final_completion().choices[0].message.content
    first = api.responses.create(model=keeper, input="one")
    with api.responses.stream(model=keeper, input="two", previous_response_id=first.id) as stream:
        second = stream.get_final_response()
    assert api.responses.retrieve(second.id).output_text == second.output_text
    later = api.responses.create(model=keeper, input="three", background=True)
    while later.status == "in_progress":
        later = api.responses.retrieve(later.id)
    waits = api.responses.create(model=keeper, input="wait", background=True)
    cancelled = api.responses.cancel(waits.id)
    return {
        "stored": [text_of(item) for item in api.conversations.items.list(in_thread["threadkeep-thread"], order="asc")],
        "turns": turns,
        "streamed_chat": streamed_chat,
        "responses": [first.output_text, second.output_text, later.output_text],
        "same_conversation": first.conversation == second.conversation,
        "cancelled": cancelled.status,
        "model": api.models.retrieve(keeper).id,
    }


def body_of(call):
    try:
        call()
    except openai.APIStatusError as error:
        body = dict(error.body)
        assert body.pop("request_id") == error.request_id
        return [error.status_code, body]


def errors():
    api = client()
    id = api.conversations.create().id
    unknown = "conv_" + "0" * 48
    post = lambda text: api.post(f"/conversations/{id}/items", cast_to=object, content=text.encode())
    return [
        body_of(lambda: api.conversations.retrieve(unknown)),
        body_of(lambda: api.conversations.items.retrieve("msg_unknown", conversation_id=id)),
        body_of(lambda: api.conversations.items.list(id, limit=1000)),
        body_of(lambda: api.responses.create(model="echo", input="x", conversation=id, previous_response_id="resp_0")),
        body_of(lambda: post("{not JSON")),
        body_of(lambda: api.responses.create(model="echo")),
    ]


class Location(pydantic.BaseModel):
    at: str


def formats():
    api = client()
    with api.responses.stream(model="echo", input="x", text_format=Location) as stream:
        streamed = stream.get_final_response().output_parsed
    events = [event.to_dict() for event in api.responses.create(model="echo", input="hello", stream=True)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    raw = api.responses.with_raw_response.create(model="echo", input="hello")
    with api.responses.with_streaming_response.create(model="echo", input="hello") as streaming:
        streaming = streaming.parse().output_text
    first = api.responses.create(model="echo", input="one")
    compacted = api.responses.compact(model="echo", previous_response_id=first.id)
    compacted_items = [item.to_dict() for item in compacted.output]
    reference = {"type": "item_reference", "id": first.output[0].id}

    async def asynchronous():
        api = openai.AsyncOpenAI(base_url=BASE, max_retries=3)
        conversation = await api.conversations.create(items=[user(str(number)) for number in range(20)])
        await api.conversations.items.create(conversation.id, items=[user("20"), user("21")])
        listed = api.conversations.items.list(conversation.id, order="asc", include=["reasoning.encrypted_content"])
        return [text_of(item) async for item in listed]

    return {
        "parsed": [
            api.responses.parse(model="echo", input="x", text_format=Location).output_parsed.at,
            streamed.at,
            api.chat.completions.parse(model="echo", messages=[user("x")], response_format=Location)
            .choices[0]
            .message.parsed.at,
        ],
        "events": [event["type"] for event in events],
        "raw": [raw.headers["x-request-id"][:4], raw.parse().output_text, streaming],
        "input_tokens": api.responses.input_tokens.count(model="gpt-5", input="hello there").input_tokens,
        "after_compaction": api.responses.create(model="echo", input=[*compacted_items, user("two")]).output_text,
        "after_reference": api.responses.create(model="echo", input=[reference, user("two")]).output_text,
        "asynchronous": asyncio.run(asynchronous()),
    }


def files():
    api = client()
    text = "# Handbook\n\nThe stove burns paraffin.\n"
    created = api.files.create(file=("handbook.md", text.encode()), purpose="assistants")
    processed = api.files.wait_for_processing(created.id, poll_interval=0.05)
    assert api.files.retrieve(created.id) == processed
    others = [api.files.create(file=(f"{number}.txt", b"x"), purpose="user_data") for number in range(3)]
    listed = list(api.files.list(order="asc", limit=2))
    found = api.post("/files/search", cast_to=object, body={"query": "What does the stove burn?"})
    content = api.files.content(created.id)
    deleted = api.files.delete(created.id)
    return {
        "file": [processed.object, processed.status, processed.filename, processed.purpose, processed.bytes],
        "listed": [file.filename for file in listed],
        "purposes": [file.filename for file in api.files.list(purpose="user_data", order="asc")],
        "same": [file.id for file in listed] == [created.id, *[other.id for other in others]],
        "content": [content.text == text, content.read() == text.encode()],
        "found": [found["data"][0]["file_id"] == created.id, found["data"][0]["filename"]],
        "deleted": [deleted.id == created.id, deleted.deleted, deleted.object],
        "errors": [
            status_of(lambda: api.files.retrieve(created.id)),
            status_of(lambda: api.files.content("file-unknown")),
            body_of(lambda: api.files.create(file=("a.txt", b"x"), purpose="batch"))[1]["param"],
            body_of(lambda: api.files.create(file=("a.pdf", b"%PDF"), purpose="assistants"))[1]["code"],
        ],
    }


def refusals():
    """What the official client raises for requests that are rejected by name."""
    api = client()
    output = {"type": "function_call_output", "call_id": "call_unknown", "output": "x"}
    file = {"type": "file", "file": {"file_id": "file-1"}}

    def raised(call):
        try:
            call()
        except openai.APIStatusError as error:
            return [type(error).__name__, error.code, error.param]

    return [
        raised(lambda: api.responses.create(model="echo", input=[output])),
        raised(lambda: api.chat.completions.create(model="echo", messages=[user("x")], logprobs=True)),
        raised(lambda: api.chat.completions.create(model="echo", messages=[user("x")], n=2)),
        raised(lambda: api.responses.create(model="echo", input="x", top_logprobs=2)),
        raised(lambda: api.chat.completions.create(model="echo", messages=[user("x")], verbosity="low")),
        raised(lambda: api.chat.completions.create(model="echo", messages=[{"role": "user", "content": [file]}])),
        raised(lambda: api.responses.create(model="gpt-9", input="x")),
    ]


def memory():
    """One header gives a client memory; the answers name the model that answered."""
    api = client().with_options(default_headers={"Threadkeep-Thread": INPUT["key"]})
    chats = [api.chat.completions.create(model="gpt-5", messages=[user(text)]) for text in ("one", "two")]
    response = api.responses.create(model="gpt-5", input="three")
    streamed = api.chat.completions.create(model="gpt-5", messages=[user("four")], stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices)
    annotated = api.conversations.items.list(response.conversation.id, order="desc", limit=1).data[0]
    return {
        "chats": [chat.choices[0].message.content for chat in chats],
        "response": response.output_text,
        "streamed": streamed,
        "models": [chats[0].model, response.model],
        "defaults": [response.top_logprobs, response.reasoning.summary, annotated.content[0].annotations],
        "key": api.get(f"/threads/{INPUT['key']}", cast_to=object)["key"],
    }


def administration():
    """The API beside OpenAI's, through the client's own requests: limits, patches, external ids, bulk, lists, search."""
    api = client()
    created = api.post("/keys", cast_to=object, body={"name": "limited", "roles": ["write"], "rate": 60})
    limited = openai.OpenAI(base_url=BASE, api_key=created["secret"])
    listed = limited.models.with_raw_response.list()
    names = ["limit", "remaining", "reset"]
    headers = [listed.headers.get(f"x-ratelimit-{name}-requests") for name in names]
    api = limited
    thread = api.post("/threads", cast_to=object, body={"metadata": {"env": "prod", "old": 1}})["id"]
    merge = {"headers": {"Content-Type": "application/merge-patch+json"}}
    patched = api.patch(f"/threads/{thread}", cast_to=object, body={"metadata": {"old": None, "new": 2}}, options=merge)
    message = {"role": "user", "content": [{"type": "text", "text": "paraffin"}], "external_id": "m-1"}
    path = f"/threads/{thread}/messages"
    append = lambda message: api.post(path, cast_to=object, body={"messages": [message]})["messages"][0]
    outcomes = [append(message) for _ in range(2)]
    changed = append({**message, "content": "kerosene"})
    texts = [message["text"] for message in api.get(path, cast_to=object)["data"]]
    query = {"query": "kerosene", "metadata": {"env": "prod"}}
    search = api.post("/search", cast_to=object, body=query)
    recalled = api.post("/recall", cast_to=object, body={"question": "Which kerosene?", "metadata": {"env": "test"}})
    conversation = api.conversations.create(metadata={"topic": "stoves"})
    response = api.responses.create(model="echo", input="hello")
    lists = [
        [entry["id"] for entry in api.get(path, cast_to=object, options={"params": params})["data"]]
        for path, params in [("/conversations", {"metadata[topic]": "stoves"}), ("/responses", {})]
    ]
    deleted = api.post("/bulk/threads/delete", cast_to=object, body={"threads": [thread, "unknown"]})
    return {
        "headers": [headers[0], int(headers[1]) < 60, headers[2].endswith("s")],
        "patched": patched["metadata"],
        "external_ids": [outcomes[0]["seq"] == outcomes[1]["seq"], changed["seq"], texts],
        "search": [len(search["hits"]), recalled["turns"]],
        "lists": [lists[0] == [conversation.id], response.id in lists[1]],
        "deleted": [result["status"] for result in deleted["results"]],
        "forbidden": status_of(lambda: api.get("/keys", cast_to=object)),
    }


parts = {
    "refusals": refusals,
    "memory": memory,
    "administration": administration,
    "items": items,
    "model": model,
    "lossy": lossy,
    "assistants": assistants,
    "errors": errors,
    "formats": formats,
    "files": files,
}
print(json.dumps(parts[PART]()))
