// Slack's own package for Socket Mode on Node.js against the local Slack. Prints each message that it receives.

import { LogLevel, SocketModeClient } from "@slack/socket-mode";

const [slackApiUrl, appToken] = process.argv.slice(2);
const client = new SocketModeClient({ appToken, logLevel: LogLevel.ERROR, clientOptions: { slackApiUrl } });
const show = (value) => console.log(JSON.stringify(value));

client.on("slack_event", async ({ ack, type, body }) => {
  show([type, body.event?.type ?? body.type, body.event?.text ?? null]);
  await ack();
});
await client.start();
show("connected");
