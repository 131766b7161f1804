// Plays a loop with a client for Node: what a user's program does around it, and nothing else.
//
// Arguments: the client, the address it asks. Standard input: the system text, the questions, and what the tool
// answers at each place. Every second call is streamed, where the client is one of a provider; the programs of
// Vercel's SDK stream every second question. The last line that is printed says how many answers came.
const [, , name, address] = process.argv;
const { system, questions, answers, image } = JSON.parse(await new Response(process.stdin).text());
const description = "Look at a place.";
const parameters = { type: "object", properties: { place: { type: "integer" } }, required: ["place"] };
const picture = image.split(",")[1];
let came = 0;

const streams = () => came++ % 2 === 1;
const look = (place) => answers[place].error ? `error: ${answers[place].text}` : answers[place].text;

async function chat() {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ apiKey: "none", baseURL: `${address}/v1`, maxRetries: 0 });
  const tools = [{ type: "function", function: { name: "look", description, parameters } }];
  const messages = [{ role: "system", content: system }];
  for (const { text, has_image } of questions) {
    const parts = [{ type: "text", text }, { type: "image_url", image_url: { url: image, detail: "auto" } }];
    messages.push({ role: "user", content: has_image ? parts : text });
    for (;;) {
      const request = { model: "gpt-4o", messages, tools };
      const answer = streams()
        ? await client.chat.completions.stream(request).finalChatCompletion()
        : await client.chat.completions.create(request);
      const { role, content, tool_calls } = answer.choices[0].message;
      messages.push(tool_calls?.length ? { role, content, tool_calls } : { role, content });
      if (!tool_calls?.length) break;
      for (const call of tool_calls) {
        const { place } = JSON.parse(call.function.arguments);
        messages.push({ role: "tool", tool_call_id: call.id, content: look(place) });
      }
    }
  }
}

async function responses() {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ apiKey: "none", baseURL: `${address}/v1`, maxRetries: 0 });
  const tools = [{ type: "function", name: "look", description, parameters, strict: false }];
  const input = [];
  for (const { text, has_image } of questions) {
    const parts = [{ type: "input_text", text }, { type: "input_image", image_url: image, detail: "auto" }];
    input.push({ role: "user", content: has_image ? parts : text });
    for (;;) {
      const request = { model: "gpt-5", input, instructions: system, tools };
      const answer = streams()
        ? await client.responses.stream(request).finalResponse()
        : await client.responses.create(request);
      const calls = answer.output.filter((item) => item.type === "function_call");
      input.push(...answer.output.map(({ parsed_arguments, ...item }) => item));
      if (!calls.length) break;
      for (const call of calls) {
        const { place } = JSON.parse(call.arguments);
        input.push({ type: "function_call_output", call_id: call.call_id, output: look(place) });
      }
    }
  }
}

async function messages() {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const client = new Anthropic({ apiKey: "none", baseURL: address, maxRetries: 0 });
  const tools = [{ name: "look", description, input_schema: parameters }];
  const said = [];
  for (const { text, has_image } of questions) {
    const source = { type: "base64", media_type: "image/png", data: picture };
    said.push({ role: "user", content: has_image ? [{ type: "image", source }, { type: "text", text }] : text });
    for (;;) {
      const request = { model: "claude-sonnet-4-5", max_tokens: 1000, system, messages: said, tools };
      const answer = streams()
        ? await client.messages.stream(request).finalMessage()
        : await client.messages.create(request);
      said.push({ role: "assistant", content: answer.content });
      const calls = answer.content.filter((block) => block.type === "tool_use");
      if (!calls.length) break;
      const results = calls.map(({ id, input: { place } }) => ({
        type: "tool_result",
        tool_use_id: id,
        content: answers[place].text,
        ...(answers[place].error ? { is_error: true } : {}),
      }));
      said.push({ role: "user", content: results });
    }
  }
}

async function content() {
  const { GoogleGenAI } = await import("@google/genai");
  const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: address } });
  const tools = [{ functionDeclarations: [{ name: "look", description, parametersJsonSchema: parameters }] }];
  const contents = [];
  for (const { text, has_image } of questions) {
    const parts = has_image ? [{ inlineData: { mimeType: "image/png", data: picture } }, { text }] : [{ text }];
    contents.push({ role: "user", parts });
    for (;;) {
      const request = { model: "gemini-2.5-flash", contents, config: { systemInstruction: system, tools } };
      let said = { role: "model", parts: [] };
      if (streams()) {
        for await (const part of await client.models.generateContentStream(request))
          said.parts.push(...(part.candidates?.[0]?.content?.parts ?? []));
      } else {
        said = (await client.models.generateContent(request)).candidates[0].content;
      }
      contents.push(said);
      const calls = said.parts.flatMap((part) => (part.functionCall ? [part.functionCall] : []));
      if (!calls.length) break;
      const results = calls.map(({ id, name, args }) => {
        const { text, error } = answers[args.place];
        return { functionResponse: { id, name, response: error ? { error: text } : { output: text } } };
      });
      contents.push({ role: "user", parts: results });
    }
  }
}

async function vercel(model, providerOptions) {
  const { generateText, jsonSchema, stepCountIs, streamText, tool } = await import("ai");
  const execute = async ({ place }) => {
    if (answers[place].error) throw new Error(answers[place].text);
    return answers[place].text;
  };
  const tools = { look: tool({ description, inputSchema: jsonSchema(parameters), execute }) };
  const messages = [];
  for (const [number, { text, has_image }] of questions.entries()) {
    const parts = [{ type: "text", text }, { type: "image", image: picture, mediaType: "image/png" }];
    messages.push({ role: "user", content: has_image ? parts : text });
    const asked = { model, system, tools, messages, providerOptions, maxRetries: 0, stopWhen: stepCountIs(1000) };
    if (number % 2) {
      const failed = [];
      const answer = streamText({ ...asked, onError: ({ error }) => failed.push(error) });
      const steps = await answer.steps;
      if (failed.length) throw failed[0];
      came += steps.length;
      messages.push(...(await answer.response).messages);
    } else {
      const answer = await generateText(asked);
      came += answer.steps.length;
      messages.push(...answer.response.messages);
    }
  }
}

async function vercelOpenAI() {
  const { createOpenAI } = await import("@ai-sdk/openai");
  return createOpenAI({ apiKey: "none", baseURL: `${address}/v1` });
}

const plays = {
  chat,
  responses,
  messages,
  content,
  "ai chat": async () => vercel((await vercelOpenAI()).chat("gpt-4o")),
  // Else it names earlier items by their ids, which the server is to know: there would be nothing to fit.
  "ai responses": async () => vercel((await vercelOpenAI()).responses("gpt-5"), { openai: { store: false } }),
  "ai messages": async () => {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    return vercel(createAnthropic({ apiKey: "none", baseURL: `${address}/v1` })("claude-sonnet-4-5"));
  },
  "ai content": async () => {
    const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
    return vercel(createGoogleGenerativeAI({ apiKey: "none", baseURL: `${address}/v1beta` })("gemini-2.5-flash"));
  },
};
await plays[name]();
console.log(JSON.stringify({ came }));
