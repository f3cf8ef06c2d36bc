// Slack's own package for Node.js against the local Slack. Prints JSON, which the tests in slack_clients.rs check.

import { LogLevel, WebClient } from "@slack/web-api";

const [base, token] = process.argv.slice(2);
const client = new WebClient(token, { slackApiUrl: base, logLevel: LogLevel.ERROR });
const channel = "C0CLIENT";

const errorOf = async (call) => {
  try {
    await call();
    return null;
  } catch (error) {
    return error.data.error;
  }
};

// The workspace rate-limits the first call; the client waits and retries it.
const me = await client.auth.test();
const root = await client.chat.postMessage({ channel, text: "root" });
const blocks = [
  { type: "section", text: { type: "mrkdwn", text: "Delete it?" } },
  { type: "actions", elements: [{ type: "button", text: { type: "plain_text", text: "Yes" }, action_id: "yes", value: "7" }] },
];
const metadata = { event_type: "answer", event_payload: { turn: "t1" } };
const reply = await client.chat.postMessage({ channel, text: "reply", thread_ts: root.ts, blocks, metadata });
for (let number = 0; number < 5; number++) {
  await client.chat.postMessage({ channel, text: `m${number}` });
}
await client.chat.update({ channel, ts: reply.ts, text: "changed" });
const gone = await client.chat.postMessage({ channel, text: "gone" });
await client.chat.delete({ channel, ts: gone.ts });
await client.reactions.add({ channel, timestamp: root.ts, name: "eyes" });
const pages = [];
for await (const page of client.paginate("conversations.history", { channel, limit: 4 })) {
  pages.push(page.messages.map((message) => message.text));
}
const thread = await client.conversations.replies({ channel, ts: root.ts, include_all_metadata: true });
console.log(
  JSON.stringify({
    me: [me.team_id, me.user_id, me.bot_id],
    pages,
    thread: thread.messages.map((message) => message.text),
    metadata: thread.messages[1].metadata,
    errors: [
      await errorOf(() => client.chat.postMessage({ channel: "nowhere", text: "x" })),
      await errorOf(() => client.chat.update({ channel, ts: "1.1", text: "x" })),
      await errorOf(() => client.apiCall("chat.unknown")),
      await errorOf(() => new WebClient("xoxb-other", { slackApiUrl: base }).auth.test()),
    ],
  }),
);
