// sqs-producer and sqs-consumer: batches, a heartbeat, and a consumer stopped in the middle of its long poll; topics.
import assert from "node:assert/strict";
import {
  CreateTopicCommand,
  DeleteTopicCommand,
  NotFoundException,
  PublishBatchCommand,
  PublishCommand,
  SNSClient,
  SubscribeCommand,
} from "@aws-sdk/client-sns";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { Producer } from "sqs-producer";

const endpoints = process.env.ENDPOINTS.split(",");
const client = (endpoint) => new SQSClient({ endpoint, region: "us-east-1" });
const one = client(endpoints[0]);
const other = client(endpoints.at(-1));

const names = (count, prefix) => Array.from({ length: count }, (_, number) => `${prefix}${number}`);

// Runs a consumer until `seen` holds `count` bodies.
function consume(queueUrl, count, { seen = new Set(), workMs = 0, options = {} } = {}) {
  return new Promise((resolve, reject) => {
    const consumer = Consumer.create({
      queueUrl,
      sqs: other,
      batchSize: 10,
      waitTimeSeconds: 5,
      handleMessageBatch: async (messages) => {
        if (workMs) await new Promise((done) => setTimeout(done, workMs));
        for (const message of messages) seen.add(message.Body);
        if (seen.size >= count) setImmediate(() => consumer.stop());
        return messages;
      },
      ...options,
    });
    for (const event of ["error", "processing_error", "timeout_error"]) consumer.on(event, reject);
    consumer.on("stopped", () => resolve(seen));
    consumer.start();
  });
}

// Sends while the only consumer leaves in the middle of its long poll: what it took with it comes back.
async function abortedPollsLoseNothing(queueUrl, producer, rounds) {
  const seen = new Set();
  for (const body of names(rounds, "aborted-")) {
    const handleMessage = async (message) => {
      seen.add(message.Body);
      return message;
    };
    const left = Consumer.create({ queueUrl, sqs: other, waitTimeSeconds: 20, handleMessage });
    left.on("error", () => {});
    left.start();
    await new Promise((done) => setTimeout(done, 200)); // the poll is on its way; nothing tells when it waits
    const sending = producer.send([body]);
    left.stop({ abort: true });
    await sending;
  }
  if (seen.size < rounds) await consume(queueUrl, rounds, { seen });
  assert.deepEqual([...seen].sort(), names(rounds, "aborted-"));
}

// A topic with a queue: what the filter of its subscription keeps back does not come.
async function topicsFanOut(queueUrl) {
  const sns = endpoints.map((endpoint) => new SNSClient({ endpoint, region: "us-east-1" }));
  const { TopicArn } = await sns[0].send(new CreateTopicCommand({ Name: `javascript-${Date.now()}` }));
  const { Attributes } = await one.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ["QueueArn"] }),
  );
  await sns.at(-1).send(new SubscribeCommand({
    TopicArn,
    Protocol: "sqs",
    Endpoint: Attributes.QueueArn,
    Attributes: { RawMessageDelivery: "true", FilterPolicyScope: "MessageBody", FilterPolicy: '{"price": [{"numeric": [">", 5]}]}' },
  }));
  await sns[0].send(new PublishCommand({ TopicArn, Message: '{"price": 9}' }));
  const { Successful, Failed } = await sns.at(-1).send(new PublishBatchCommand({
    TopicArn,
    PublishBatchRequestEntries: [1, 7].map((price) => ({ Id: `${price}`, Message: `{"price": ${price}}` })),
  }));
  assert.deepEqual([Successful.length, Failed], [2, []]);
  assert.deepEqual([...(await consume(queueUrl, 2))].sort(), ['{"price": 7}', '{"price": 9}']);
  await sns[0].send(new DeleteTopicCommand({ TopicArn }));
  await assert.rejects(sns.at(-1).send(new PublishCommand({ TopicArn, Message: "x" })), NotFoundException);
}

const name = `javascript-${Date.now()}`;
await assert.rejects(other.send(new GetQueueUrlCommand({ QueueName: name })), QueueDoesNotExist);
const { QueueUrl: queueUrl } = await one.send(new CreateQueueCommand({
  QueueName: name,
  Attributes: { VisibilityTimeout: "3" },
}));
const producer = Producer.create({ queueUrl, region: "us-east-1", sqs: one });
await producer.send(names(12, "message-"));
assert.equal((await consume(queueUrl, 12)).size, 12);
assert.equal(await producer.queueSize(), 0);

await producer.send(["slow"]);
const slow = { workMs: 6000, options: { visibilityTimeout: 3, heartbeatInterval: 1 } };
assert.deepEqual([...(await consume(queueUrl, 1, slow))], ["slow"]);
assert.equal(await producer.queueSize(), 0);
await abortedPollsLoseNothing(queueUrl, producer, 5);
await topicsFanOut(queueUrl);
console.log("javascript: typed error, 12 in batches, heartbeat over the visibility timeout, 5 aborted long polls, topics");
process.exit(0);
