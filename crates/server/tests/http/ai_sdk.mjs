// Runs the tool loop of the AI SDK in a conversation. Prints JSON, which the tests in v1/resent.rs check.

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

const [base, conversation] = process.argv.slice(2);
const openai = createOpenAI({ baseURL: base });
let looks = 0;
const look = tool({
  description: "Looks up the next train",
  inputSchema: z.object({ at: z.string() }),
  // The output `call` makes the model call the tool again.
  execute: async () => (looks++ === 0 ? "call" : "in 3 minutes"),
});
const result = await generateText({
  model: openai.responses("echo"),
  prompt: "call",
  tools: { look },
  stopWhen: stepCountIs(6),
  providerOptions: { openai: { conversation } },
});
console.log(JSON.stringify({ text: result.text, steps: result.steps.length }));
