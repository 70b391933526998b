// A NestJS application whose module is @ssut/nestjs-sqs: a handler of single messages, and one of batches on a FIFO queue.
import "reflect-metadata";
import { CreateQueueCommand, SQSClient } from "@aws-sdk/client-sqs";
import { NestFactory } from "@nestjs/core";
import nest from "@ssut/nestjs-sqs";

const { SqsConsumerEventHandler, SqsMessageHandler, SqsModule, SqsService } = nest;
const endpoints = process.env.ENDPOINTS.split(",");
const run = `nestjs-${Date.now()}`;

export const SINGLE = `${run}-single`;
export const FIFO = `${run}.fifo`;
export const seen = { [SINGLE]: new Map(), [FIFO]: new Map() };
export const errors = [];
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// The body fails that asks for it, when it comes first.
const note = (name, body) => {
  const count = (seen[name].get(body) ?? 0) + 1;
  seen[name].set(body, count);
  if (body.includes("fails once") && count === 1) throw new Error("as it should");
};

class Handlers {}

// Does what TypeScript makes of a method with a decorator: node has no decorators.
function define(decorator, method, body) {
  Handlers.prototype[method] = body;
  decorator(Handlers.prototype, method, Object.getOwnPropertyDescriptor(Handlers.prototype, method));
}

define(SqsMessageHandler(SINGLE, false), "single", async (message) => note(SINGLE, message.Body));
define(SqsMessageHandler(FIFO, true), "batch", async (messages) => {
  for (const message of messages) note(FIFO, message.Body);
});
for (const name of [SINGLE, FIFO])
  for (const event of ["error", "processing_error"])
    define(SqsConsumerEventHandler(name, event), `${event} of ${name}`, (error) => {
      if (!error.message.includes("as it should")) errors.push(error);
    });

export async function start(visibilityTimeout) {
  const sqs = new SQSClient({ endpoint: endpoints.at(-1), region: "us-east-1" });
  const sides = [];
  for (const name of [SINGLE, FIFO]) {
    const attributes = { VisibilityTimeout: visibilityTimeout };
    if (name === FIFO) Object.assign(attributes, { FifoQueue: "true", ContentBasedDeduplication: "true" });
    const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }));
    sides.push({ name, queueUrl: QueueUrl, region: "us-east-1", sqs });
  }
  const module = {
    module: class Application {},
    imports: [
      SqsModule.register({
        consumers: sides.map((side) => ({ ...side, waitTimeSeconds: 2, batchSize: 10 })),
        producers: sides,
      }),
    ],
    providers: [Handlers],
  };
  const application = await NestFactory.createApplicationContext(module, { logger: ["error"] });
  return { application, service: application.get(SqsService) };
}

export async function all(name, count) {
  for (const deadline = Date.now() + 60_000; seen[name].size < count && Date.now() < deadline;) await pause(50);
}
