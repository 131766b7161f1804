// A run of the Vercel AI SDK with a model that says what it is told to: what its users store of it, as JSON.
import { convertToModelMessages, generateText, jsonSchema, readUIMessageStream, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";

const usage = { inputTokens: { total: 20, noCache: 20 }, outputTokens: { total: 5, text: 5 } };
const call = (toolCallId, toolName, input) => ({ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) });
const answers = [
  {
    content: [
      { type: "reasoning", text: "Two cities: two calls." },
      { type: "text", text: "I look at both." },
      call("call_1", "weather", { city: "Paris" }),
      call("call_2", "weather", { city: "Rome" }),
    ],
    finishReason: { unified: "tool-calls" },
  },
  { content: [call("call_3", "map", { of: "Rome" })], finishReason: { unified: "tool-calls" } },
  { content: [{ type: "text", text: "Go to Rome." }], finishReason: { unified: "stop" } },
];

const tools = {
  weather: tool({
    description: "The weather of a city.",
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
    execute: async ({ city }) => {
      if (city === "Paris") throw new Error("no station");
      return { sky: "clear", degrees: 21 };
    },
  }),
  map: tool({
    description: "A map.",
    inputSchema: jsonSchema({ type: "object", properties: { of: { type: "string" } } }),
    execute: async () => "a map of Rome",
  }),
};

const system = "Be brief.";
const model = () => {
  let at = 0;
  return new MockLanguageModelV3({
    modelId: "gpt-4o",
    doGenerate: async () => ({ ...answers[at++], usage, warnings: [] }),
    doStream: async () => {
      const answer = answers[at++];
      const chunks = answer.content.flatMap((part, id) =>
        part.type === "tool-call"
          ? [part]
          : [
              { type: `${part.type}-start`, id: String(id) },
              { type: `${part.type}-delta`, id: String(id), delta: part.text },
              { type: `${part.type}-end`, id: String(id) },
            ],
      );
      const finish = { type: "finish", finishReason: answer.finishReason, usage };
      return { stream: simulateReadableStream({ chunks: [{ type: "stream-start", warnings: [] }, ...chunks, finish] }) };
    },
  });
};

const messages = [{ role: "user", content: [{ type: "text", text: "Paris or Rome?" }] }];
const loop = { tools, system, stopWhen: stepCountIs(5) };
const asked = model();
const said = await generateText({ ...loop, model: asked, messages });

const ui = [
  {
    id: "m1",
    role: "user",
    parts: [
      { type: "text", text: "Paris or Rome?" },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" },
    ],
  },
];
const streamed = streamText({ ...loop, model: model(), messages: await convertToModelMessages(ui) });
let last;
for await (const message of readUIMessageStream({ stream: streamed.toUIMessageStream({ sendSources: true }) })) last = message;
const page = [...ui, { ...last, id: "m2" }, { id: "m3", role: "user", parts: [{ type: "text", text: "Thanks." }] }];

// Messages of a page in any state, by chance of a fixed seed: the SDK itself says what they are for a model.
let seed = 7;
const chance = (below) => (seed = (seed * 48271) % 2147483647) % below;
const pick = (...list) => list[chance(list.length)];
const states = [
  { state: "output-available", output: "rain" },
  { state: "output-available", output: { sky: ["blue", 1.5, null] } },
  { state: "output-error", errorText: "no station" },
  { state: "input-streaming" },
  { state: "output-denied", approval: { id: "a", approved: false, reason: "not today" } },
  { state: "output-denied", approval: { id: "a", approved: false } },
  { state: "output-available", output: 21, approval: { id: "a", approved: true } },
  { state: "output-available", output: "found", providerExecuted: true },
];
let number = 0;
const piece = () => {
  const called = { toolCallId: `call_${number++}`, input: { city: "Rome", n: [1, 2] }, ...states[chance(states.length)] };
  return pick(
    () => ({ type: "text", text: `Word ${number}.` }),
    () => ({ type: "step-start" }),
    () => ({ type: "reasoning", text: "Hm." }),
    () => ({ type: "data-progress", data: { done: 3 } }),
    () => ({ type: "source-url", sourceId: "s", url: "https://example.org" }),
    () => ({ type: "tool-weather", ...called }),
    () => ({ type: "dynamic-tool", toolName: "map", ...called }),
  )();
};
const pages = Array.from({ length: 300 }, () =>
  Array.from({ length: 1 + chance(5) }, (_, at) => ({
    id: `m${at}`,
    role: at % 2 ? "assistant" : "user",
    parts: at % 2 ? Array.from({ length: chance(9) }, piece) : [{ type: "text", text: "Go on." }],
  })),
);

console.log(
  JSON.stringify({
    model_messages: { model: "gpt-4o", system, tools, messages: [...messages, ...said.response.messages] },
    ui_messages: page,
    converted: await convertToModelMessages(page),
    pages: await Promise.all(pages.map(async (page) => [page, await convertToModelMessages(page)])),
    sent: asked.doGenerateCalls.map(({ prompt, tools }) => ({ prompt, tools })),
  }),
);
