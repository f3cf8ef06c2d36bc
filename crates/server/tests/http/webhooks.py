"""Verifies deliveries of webhooks with the official library of Standard Webhooks.

Reads a JSON list of deliveries (secret, headers, body) and prints the decoded events. Then checks that changed deliveries are rejected.
"""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

events = []
for delivery in json.loads(sys.argv[1]):
    webhook = Webhook(delivery["secret"])
    events.append(webhook.verify(delivery["body"], delivery["headers"]))
    try:
        webhook.verify(delivery["body"] + " ", delivery["headers"])
        sys.exit("the library accepted a changed body")
    except WebhookVerificationError:
        pass
print(json.dumps(events))
