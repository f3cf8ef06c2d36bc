"""Calls a server with the official Agents SDK. Prints JSON, which the tests in clients.rs check."""

import asyncio
import json
import sys

import agents
import openai
import pydantic

PART, BASE, INPUT = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
API = openai.AsyncOpenAI(base_url=BASE, max_retries=3)
MODEL = agents.OpenAIResponsesModel(model="echo", openai_client=API)

agents.set_tracing_disabled(True)


class Place(pydantic.BaseModel):
    at: str


@agents.function_tool
def look(at: str) -> str:
    """Looks at the next arrivals."""
    return "in 3 minutes"


def agent(**more):
    return agents.Agent(name="subway", model=MODEL, **{"tools": [look], **more})


def session():
    return agents.OpenAIConversationsSession(openai_client=API)


def plain(items):
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
    here, there = session(), agents.SQLiteSession("there")
    answers = []
    for _ in range(2):
        first = await agents.Runner.run(agent(), "call", session=here)
        second = await agents.Runner.run(agent(), "call", session=there)
        assert first.final_output == second.final_output
        answers.append(first.final_output)
    kept = await here.get_items()
    equal = plain(kept) == plain(await there.get_items())
    latest = plain(await here.get_items(limit=3)) == plain(kept)[-3:]
    popped = plain([await here.pop_item()]) == plain(kept)[-1:]
    left = len(await here.get_items())
    texts = [str(number) for number in range(INPUT["items"])]
    await here.add_items([{"role": "user", "content": text} for text in texts])
    added = [item["content"][0]["text"] for item in (await here.get_items())[left:]]
    await here.clear_session()
    return {
        "kinds": [item["type"] for item in kept],
        "answers": answers,
        "as_sqlite": [equal, latest, popped],
        "left": left,
        "added": added == texts,
        "cleared": await here.get_items(),
    }


async def runs():
    here = session()
    for _ in range(2):
        streamed = agents.Runner.run_streamed(agent(), "call", session=here)
        kinds = [event.name async for event in streamed.stream_events() if event.type == "run_item_stream_event"]
    other = agents.Agent(name="other", model=MODEL)
    handed = await agents.Runner.run(agent(tools=[], handoffs=[other]), "call", session=session())
    conversation = (await API.conversations.create()).id
    for _ in range(2):
        in_conversation = await agents.Runner.run(agent(), "call", conversation_id=conversation)
    stored = [item.type async for item in API.conversations.items.list(conversation, order="asc")]
    first = await agents.Runner.run(agent(), "call")
    chained = await agents.Runner.run(agent(), "call", previous_response_id=first.last_response_id)
    automatic = await agents.Runner.run(agent(), "call", auto_previous_response_id=True)
    formed = await agents.Runner.run(agent(output_type=Place), "x")
    return {
        "streamed": [streamed.final_output, kinds, len(await here.get_items())],
        "handed": [handed.last_agent.name, handed.final_output],
        "in_conversation": [in_conversation.final_output, stored],
        "chained": [chained.final_output, automatic.final_output],
        "formed": formed.final_output.at,
    }


async def compaction():
    kept = agents.SQLiteSession("kept")
    here = agents.OpenAIResponsesCompactionSession(
        "here",
        underlying_session=kept,
        client=API,
        model="gpt-5",
        should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) >= 3,
    )
    answers = [(await agents.Runner.run(agent(tools=[]), str(turn), session=here)).final_output for turn in range(4)]
    return {"answers": answers, "kinds": [item.get("type", "message") for item in await kept.get_items()]}


async def locked():
    """Concurrent turns wait for each other: the runner retries while the conversation is locked."""
    conversation = (await API.conversations.create()).id
    asking = [agents.Runner.run(agent(), f"turn {turn}", conversation_id=conversation) for turn in range(INPUT["turns"])]
    await asyncio.gather(*asking)
    items = [item async for item in API.conversations.items.list(conversation, order="asc")]
    return [item.content[0].text for item in items]


PARTS = {"sessions": sessions, "runs": runs, "compaction": compaction, "locked": locked}
print(json.dumps(asyncio.run(PARTS[PART]())))
