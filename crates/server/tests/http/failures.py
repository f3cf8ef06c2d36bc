"""Calls a model whose provider limits requests, with the official client. Prints the exceptions as JSON, which the tests in
v1/failures.rs check."""

import json
import sys

import openai

api = openai.OpenAI(base_url=sys.argv[1], max_retries=0)
messages = [{"role": "user", "content": "limit"}]


def raised(call):
    try:
        list(call())
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.response.headers["retry-after"]]


print(
    json.dumps(
        {
            "chat": raised(lambda: api.chat.completions.create(model="echo", messages=messages)),
            "chat_stream": raised(lambda: api.chat.completions.create(model="echo", messages=messages, stream=True)),
            "responses": raised(lambda: api.responses.create(model="echo", input="limit")),
            "embeddings": raised(lambda: api.embeddings.create(model="lengths", input="limit")),
            "responses_stream": raised(lambda: api.responses.create(model="echo", input="limit", stream=True)),
        }
    )
)
