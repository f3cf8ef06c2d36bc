"""Calls a server with a client that openapi-python-client generated from the OpenAPI document. Prints JSON, which the tests in
openapi.rs check."""

import json
import sys

from threadkeep_client import AuthenticatedClient
from threadkeep_client import models
from threadkeep_client.api.bulk import delete_threads, patch_threads, put_records
from threadkeep_client.api.messages import append_messages, get_message, list_messages
from threadkeep_client.api.openai import create_conversation, create_response, list_conversation_items
from threadkeep_client.api.records import get_record, put_record
from threadkeep_client.api.search import search_messages
from threadkeep_client.api.threads import delete_thread, list_threads, open_thread

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
calls = 0


def call(operation, *args, **members):
    global calls
    calls += 1
    response = operation.sync_detailed(*args, client=client, **members)
    assert response.status_code < 300, response
    return response.parsed


thread = call(open_thread, body=models.OpenJson(title="Trains"))
drafts = [models.DraftJson(role=models.RoleJson.USER, text=text) for text in ("hello", "and again")]
added = call(append_messages, thread.id, body=models.AppendJson(messages=drafts))
page = call(list_messages, thread.id, order=models.ListMessagesOrder("asc"))
first = call(get_message, thread.id, str(added.first_seq))
assert first.id == page.data[0].id
assert call(search_messages, body=models.SearchJson(query="hello")).hits[0].thread == thread.id
call(put_record, "notes", "a", body=models.PutJson(value={"seen": True}))
assert call(get_record, "notes", "a").version == 1
assert [listed.title for listed in call(list_threads, limit=10).data] == ["Trains"]
conversation = call(create_conversation, body=models.CreateJson())
call(create_response, body=models.CreateResponseJson(input_="hello", conversation=conversation.id))
call(list_conversation_items, conversation.id)
one = call(search_messages, body=models.SearchJson(query="hello", limit=1))
assert one.next_ and call(search_messages, body=models.SearchJson(query="hello", limit=1, after=one.next_)).hits
records = [models.BulkRecordJson(namespace="notes", key=key, value=key) for key in ("b", "c")]
assert call(put_records, body=models.PutRecordsJson(records=records)).succeeded == 2
patched = call(patch_threads, body=models.PatchThreadsJson(threads=[str(thread.id), "unknown"], title="Trams"))
assert [result.status for result in patched.results] == [200, 404]
assert call(delete_threads, body=models.DeleteThreadsJson(threads=["unknown"])).failed == 1
call(delete_thread, thread.id)
print(json.dumps({"calls": calls, "texts": [message.text for message in page.data]}))
