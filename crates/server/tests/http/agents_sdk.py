"""Calls a server with the official Agents SDK.

The argument is a JSON list of [name of a function, base URL, input]. One process calls them all, because it takes seconds to
import the SDK. Prints the list of results as JSON, which the tests in clients.rs check.
"""

import asyncio
import json
import sys

import agents
import openai
import pydantic

agents.set_tracing_disabled(True)


class Location(pydantic.BaseModel):
    at: str


@agents.function_tool
def look(at: str) -> str:
    """Looks at the next arrivals."""
    return "in 3 minutes"


def agent(**options):
    return agents.Agent(name="subway", model=MODEL, **{"tools": [look], **options})


def session():
    return agents.OpenAIConversationsSession(openai_client=API)


def normalize(items):
    """Returns items in the long form, without members that only servers set."""
    normalized = []
    for item in json.loads(json.dumps(items)):
        item = {name: value for name, value in item.items() if name not in ("id", "status", "call_id")}
        if isinstance(item.get("content"), str):
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            item["content"] = [{"type": kind, "text": item["content"]}]
        for part in item.get("content", []):
            part.pop("annotations", None), part.pop("logprobs", None)
        normalized.append({"type": "message", **item})
    return normalized


async def sessions():
    conversation, local = session(), agents.SQLiteSession("there")
    answers = []
    for _ in range(2):
        first = await agents.Runner.run(agent(), "call", session=conversation)
        second = await agents.Runner.run(agent(), "call", session=local)
        assert first.final_output == second.final_output
        answers.append(first.final_output)
    stored = await conversation.get_items()
    equal = normalize(stored) == normalize(await local.get_items())
    latest = normalize(await conversation.get_items(limit=3)) == normalize(stored)[-3:]
    popped = normalize([await conversation.pop_item()]) == normalize(stored)[-1:]
    remaining = len(await conversation.get_items())
    texts = [str(number) for number in range(INPUT["items"])]
    await conversation.add_items([{"role": "user", "content": text} for text in texts])
    added = [item["content"][0]["text"] for item in (await conversation.get_items())[remaining:]]
    await conversation.clear_session()
    return {
        "kinds": [item["type"] for item in stored],
        "answers": answers,
        "as_sqlite": [equal, latest, popped],
        "remaining": remaining,
        "added": added == texts,
        "cleared": await conversation.get_items(),
    }


async def runs():
    own_session = session()
    for _ in range(2):
        streamed = agents.Runner.run_streamed(agent(), "call", session=own_session)
        kinds = [event.name async for event in streamed.stream_events() if event.type == "run_item_stream_event"]
    other = agents.Agent(name="other", model=MODEL)
    handed_off = await agents.Runner.run(agent(tools=[], handoffs=[other]), "call", session=session())
    conversation = (await API.conversations.create()).id
    for _ in range(2):
        in_conversation = await agents.Runner.run(agent(), "call", conversation_id=conversation)
    stored = [item.type async for item in API.conversations.items.list(conversation, order="asc")]
    first = await agents.Runner.run(agent(), "call")
    chained = await agents.Runner.run(agent(), "call", previous_response_id=first.last_response_id)
    automatic = await agents.Runner.run(agent(), "call", auto_previous_response_id=True)
    structured = await agents.Runner.run(agent(output_type=Location), "x")
    return {
        "streamed": [streamed.final_output, kinds, len(await own_session.get_items())],
        "handed_off": [handed_off.last_agent.name, handed_off.final_output],
        "in_conversation": [in_conversation.final_output, stored],
        "chained": [chained.final_output, automatic.final_output],
        "structured": structured.final_output.at,
    }


async def compaction():
    stored = agents.SQLiteSession("kept")
    compacting = agents.OpenAIResponsesCompactionSession(
        "here",
        underlying_session=stored,
        client=API,
        model="gpt-5",
        should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) >= 3,
    )
    answers = [(await agents.Runner.run(agent(tools=[]), str(turn), session=compacting)).final_output for turn in range(4)]
    return {"answers": answers, "kinds": [item.get("type", "message") for item in await stored.get_items()]}


async def locked():
    """Concurrent turns wait for each other: the runner retries while the conversation is locked."""
    conversation = (await API.conversations.create()).id
    asking = [agents.Runner.run(agent(), f"turn {turn}", conversation_id=conversation) for turn in range(INPUT["turns"])]
    await asyncio.gather(*asking)
    items = [item async for item in API.conversations.items.list(conversation, order="asc")]
    return [item.content[0].text for item in items]


PARTS = {"sessions": sessions, "runs": runs, "compaction": compaction, "locked": locked}
results = []
for part, base, INPUT in json.loads(sys.argv[1]):
    API = openai.AsyncOpenAI(base_url=base, max_retries=3)
    MODEL = agents.OpenAIResponsesModel(model="echo", openai_client=API)
    results.append(asyncio.run(PARTS[part]()))
print(json.dumps(results))
