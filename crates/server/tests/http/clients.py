"""What the official Python clients see of a server. Prints JSON; the tests in clients.rs say what it must be."""

import asyncio
import json
import sys

import openai

PART, BASE, INPUT = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
LOOK = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}


def client():
    return openai.OpenAI(base_url=BASE, api_key="any", max_retries=3)


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
    texts = [f"item {number}" for number in range(INPUT["items"])]
    for first in range(0, len(texts), 20):
        added = api.conversations.items.create(conversation.id, items=[user(text) for text in texts[first : first + 20]])
        assert [text_of(item) for item in added.data] == texts[first : first + 20]
    listed = lambda order: list(api.conversations.items.list(conversation.id, order=order, limit=100))
    ascending, descending = listed("asc"), listed("desc")
    # The default page, too.
    assert [item.id for item in api.conversations.items.list(conversation.id, order="asc")] == [item.id for item in ascending]
    assert api.conversations.items.retrieve(ascending[7].id, conversation_id=conversation.id) == ascending[7]
    assert api.conversations.items.delete(ascending[-1].id, conversation_id=conversation.id).id == conversation.id
    errors = [
        status_of(lambda: api.conversations.items.retrieve(ascending[-1].id, conversation_id=conversation.id)),
        status_of(lambda: api.conversations.items.list(conversation.id, limit=1000)),
    ]
    left = len(listed("asc"))
    api.conversations.delete(conversation.id)
    errors.append(status_of(lambda: api.conversations.retrieve(conversation.id)))
    return {
        "ascending": [text_of(item) for item in ascending],
        "descending": [text_of(item) for item in descending],
        "after_deletion": left,
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
        "kept": [text_of(item) for item in api.conversations.items.list(in_thread["threadkeep-thread"], order="asc")],
        "turns": turns,
        "streamed_chat": streamed_chat,
        "responses": [first.output_text, second.output_text, later.output_text],
        "same_conversation": first.conversation == second.conversation,
        "cancelled": cancelled.status,
        "model": api.models.retrieve(keeper).id,
    }


async def run_agents():
    import agents

    agents.set_tracing_disabled(True)
    api = openai.AsyncOpenAI(base_url=BASE, api_key="any", max_retries=3)

    @agents.function_tool
    def look(at: str) -> str:
        """Looks at the next arrivals."""
        return "in 3 minutes"

    model = agents.OpenAIResponsesModel(model="echo", openai_client=api)
    agent = agents.Agent(name="subway", model=model, tools=[look])
    session = agents.OpenAIConversationsSession(openai_client=api)
    first = await agents.Runner.run(agent, "call", session=session)
    second = await agents.Runner.run(agent, "call", session=session)
    kept = await session.get_items()
    latest = await session.get_items(limit=2)
    await session.pop_item()
    left = len(await session.get_items())
    await session.clear_session()
    return {
        "kinds": [item["type"] for item in kept],
        "answers": [first.final_output, second.final_output],
        "latest": len(latest),
        "after_pop": left,
    }


parts = {"items": items, "model": model, "lossy": lossy, "assistants": assistants, "agents": lambda: asyncio.run(run_agents())}
print(json.dumps(parts[PART]()))
