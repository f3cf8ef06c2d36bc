"""Interrupts and resumes streams with the official Python client. Prints JSON, which streams.rs checks."""

import json
import sys

import openai

api = openai.OpenAI(base_url=sys.argv[1], max_retries=0)


def read(events, until=None):
    """Reads the events through the first of type `until` (all if not set), then closes the connection."""
    received = []
    for event in events:
        received.append(event)
        if until and event.type == until:
            events.close()
            break
    return received


def interrupt_and_resume(**request):
    """Interrupts the stream of a background response at its first delta, and resumes the stream there.

    Other responses can only be resumed once they are complete.
    """
    until = "response.output_text.delta" if request.get("background") else None
    first = read(api.responses.create(input="hello there", stream=True, **request), until)
    first_delta = next(index for index, event in enumerate(first) if event.type == "response.output_text.delta")
    first = first[: first_delta + 1]
    cursor, response = first[-1].sequence_number, first[0].response.id
    rest = read(api.responses.retrieve(response, stream=True, starting_after=cursor))
    again = read(api.responses.retrieve(response, stream=True))
    return {
        "numbers": [event.sequence_number for event in first + rest],
        "kinds": [event.type for event in first + rest],
        "text": "".join(event.delta for event in first + rest if event.type == "response.output_text.delta"),
        "whole": rest[-1].response.output_text,
        "again": [event.type for event in again] == [event.type for event in first + rest],
        "retrieved": api.responses.retrieve(response).output_text,
    }


print(json.dumps({"background": interrupt_and_resume(background=True), "plain": interrupt_and_resume(), "assistant": interrupt_and_resume(model="threadkeep/keeper", background=True)}))
