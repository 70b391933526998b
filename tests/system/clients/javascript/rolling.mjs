// sqs-producer and sqs-consumer while the members of the cluster restart: no error, and each message comes once.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { CreateQueueCommand, SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { Producer } from "sqs-producer";

const EACH_MS = 50;
const work = process.env.WORK;
const sqs = new SQSClient({ endpoint: process.env.ENDPOINTS.split(",")[0], region: "us-east-1" });
const { QueueUrl: queueUrl } = await sqs.send(new CreateQueueCommand({
  QueueName: `rolling-${Date.now()}`,
  Attributes: { VisibilityTimeout: "30" },
}));
const errors = [];
const seen = new Map();
const consumer = Consumer.create({
  queueUrl,
  sqs,
  batchSize: 10,
  waitTimeSeconds: 2,
  handleMessage: async (message) => {
    seen.set(message.Body, (seen.get(message.Body) ?? 0) + 1);
    return message;
  },
});
for (const event of ["error", "processing_error", "timeout_error"]) consumer.on(event, (error) => errors.push(error));
consumer.start();
const producer = Producer.create({ queueUrl, region: "us-east-1", sqs });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

writeFileSync(`${work}/begun`, "");
const began = Date.now();
let sent = 0;
while (!existsSync(`${work}/over`)) {
  await producer.send([`message-${sent}`]).catch((error) => errors.push(error));
  sent += 1;
  await pause(Math.max(0, began + sent * EACH_MS - Date.now())); // the pace of a real program
}
for (const deadline = Date.now() + 60_000; seen.size < sent && Date.now() < deadline;) await pause(100);
consumer.stop();
assert.deepEqual(errors, []);
assert.equal(seen.size, sent, "all have come");
assert.deepEqual([...seen].filter(([, count]) => count > 1), []);
console.log(`javascript: ${sent} messages, each came once, no error`);
process.exit(0);
