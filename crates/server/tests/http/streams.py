"""What the official Python client sees of a stream that is cut and taken up again. Prints JSON; streams.rs says what it must be."""

import json
import sys

import openai

api = openai.OpenAI(base_url=sys.argv[1], max_retries=0)


def told(events, until=None):
    """The events up to one of a kind, then the connection is closed."""
    heard = []
    for event in events:
        heard.append(event)
        if until and event.type == until:
            events.close()
            break
    return heard


def taken_up(**request):
    """Cuts a stream at its first words, and takes it up behind them. What is not in the background is there once it is over."""
    until = "response.output_text.delta" if request.get("background") else None
    first = told(api.responses.create(input="hello there", stream=True, **request), until)
    words = next(place for place, event in enumerate(first) if event.type == "response.output_text.delta")
    first = first[: words + 1]
    cursor, response = first[-1].sequence_number, first[0].response.id
    rest = told(api.responses.retrieve(response, stream=True, starting_after=cursor))
    again = told(api.responses.retrieve(response, stream=True))
    return {
        "numbers": [event.sequence_number for event in first + rest],
        "kinds": [event.type for event in first + rest],
        "text": "".join(event.delta for event in first + rest if event.type == "response.output_text.delta"),
        "whole": rest[-1].response.output_text,
        "again": [event.type for event in again] == [event.type for event in first + rest],
        "retrieved": api.responses.retrieve(response).output_text,
    }


print(json.dumps({"background": taken_up(background=True), "plain": taken_up(), "assistant": taken_up(model="threadkeep/keeper", background=True)}))
