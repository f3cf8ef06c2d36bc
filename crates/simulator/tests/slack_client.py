"""Slack's own Python packages against the local Slack. The tests in slack_clients.rs run one part of it at a time and check its output."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from slack_bolt import App, BoltRequest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
from slack_sdk.models.blocks import ActionsBlock, ButtonElement, SectionBlock
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse

CHANNEL = "C0CLIENT"


def show(value):
    print(json.dumps(value), flush=True)


def error_of(call):
    try:
        call()
    except SlackApiError as error:
        return error.response["error"]
    return None


def blocks():
    return [SectionBlock(text="Delete it?"), ActionsBlock(elements=[ButtonElement(text="Yes", action_id="yes", value="7")])]


def web_api(client, base):
    me = client.auth_test()
    root = client.chat_postMessage(channel=CHANNEL, text="root")
    metadata = {"event_type": "answer", "event_payload": {"turn": "t1"}}
    reply = client.chat_postMessage(
        channel=CHANNEL, text="reply", thread_ts=root["ts"], blocks=blocks(), metadata=metadata, unfurl_links=False
    )
    for number in range(5):
        client.chat_postMessage(channel=CHANNEL, text=f"m{number}")
    client.chat_update(channel=CHANNEL, ts=reply["ts"], text="changed")
    gone = client.chat_postMessage(channel=CHANNEL, text="gone")
    client.chat_delete(channel=CHANNEL, ts=gone["ts"])
    client.reactions_add(channel=CHANNEL, timestamp=root["ts"], name="eyes")
    pages = [
        [message["text"] for message in page["messages"]] for page in client.conversations_history(channel=CHANNEL, limit=4)
    ]
    thread = client.conversations_replies(channel=CHANNEL, ts=root["ts"], include_all_metadata=True)["messages"]
    newer = client.conversations_history(channel=CHANNEL, oldest=root["ts"])["messages"]
    inclusive = client.conversations_history(channel=CHANNEL, oldest=root["ts"], inclusive=True)["messages"]
    show({
        "me": [me["team_id"], me["user_id"], me["bot_id"]],
        "pages": pages,
        "thread": [[message["text"], message["thread_ts"] == root["ts"]] for message in thread],
        "replies": thread[0]["reply_count"],
        "metadata": thread[1]["metadata"],
        "newer": [len(newer), len(inclusive)],
        "user": client.users_info(user="U1")["user"]["team_id"],
        "channel": client.conversations_info(channel="D0ONE")["channel"]["is_im"],
        "errors": [
            error_of(lambda: client.chat_postMessage(channel="nowhere", text="x")),
            error_of(lambda: client.chat_postMessage(channel=CHANNEL)),
            error_of(lambda: client.chat_postMessage(channel=CHANNEL, text="x", thread_ts="1.1")),
            error_of(lambda: client.chat_update(channel=CHANNEL, ts="1.1", text="x")),
            error_of(lambda: client.chat_delete(channel=CHANNEL, ts="1.1")),
            error_of(lambda: client.api_call("chat.unknown")),
            error_of(lambda: client.conversations_history(channel=CHANNEL, cursor="x")),
            error_of(lambda: WebClient(token="xoxb-other", base_url=base).auth_test()),
            error_of(lambda: WebClient(base_url=base).auth_test()),
        ],
    })


def limited(client, base):
    """Posts while the workspace rate-limits calls."""
    client.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=3))
    show({"ts": client.chat_postMessage(channel=CHANNEL, text="late")["ts"]})


def bolt(client, base):
    """Serves an app, and prints each event that it receives."""
    app = App(signing_secret=sys.argv[4], client=client)

    @app.event("app_mention")
    def mentioned(event, say):
        show(["app_mention", event["user"], event["text"]])
        say(text="Delete it?", blocks=blocks(), thread_ts=event["ts"])

    @app.event({"type": "message", "subtype": "message_changed"})
    def changed(event):
        show(["changed", event["previous_message"]["text"], event["message"]["text"]])

    @app.event({"type": "message", "subtype": "message_deleted"})
    def deleted(event):
        show(["deleted", event["previous_message"]["text"]])

    @app.event({"type": "message", "subtype": None})
    def said(event):
        show(["message", event["user"], event["text"]])

    @app.event("reaction_added")
    def reacted(event):
        show(["reaction", event["user"], event["reaction"]])

    @app.action("yes")
    def pressed(ack, body, action, respond):
        ack()
        show(["pressed", body["user"]["id"], action["value"]])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            answer = app.dispatch(BoltRequest(body=body, headers=dict(self.headers)))
            data = answer.body.encode()
            self.send_response(answer.status)
            for name, values in answer.headers.items():
                for value in values:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    show(server.server_port)
    server.serve_forever()


def files(client, base):
    """Uploads a file as a reply."""
    root = client.chat_postMessage(channel=CHANNEL, text="root")
    shared = client.files_upload_v2(
        channel=CHANNEL, thread_ts=root["ts"], content="a long answer", filename="answer.txt", title="Answer", initial_comment="here"
    )
    thread = client.conversations_replies(channel=CHANNEL, ts=root["ts"])["messages"]
    show({
        "shared": [shared["files"][0]["id"], shared["files"][0]["title"]],
        "thread": [[message["text"], [file["name"] for file in message.get("files", [])]] for message in thread],
        "error": error_of(lambda: client.files_completeUploadExternal(files=[{"id": "F0NONE"}], channel_id=CHANNEL)),
    })


def socket(client, base):
    """Connects in Socket Mode, and prints each message that it receives. Does not acknowledge the first delivery of "again"."""
    connection = SocketModeClient(app_token=sys.argv[5], web_client=client)

    def receive(connection, request):
        event = request.payload.get("event", {})
        show([request.type, event.get("type") or request.payload["type"], event.get("text"), request.retry_attempt])
        if event.get("text") != "again" or request.retry_attempt:
            connection.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    connection.socket_mode_request_listeners.append(receive)
    connection.connect()
    show("connected")
    threading.Event().wait()


part, base, token = sys.argv[1:4]
{"web_api": web_api, "limited": limited, "bolt": bolt, "files": files, "socket": socket}[part](WebClient(token=token, base_url=base), base)
