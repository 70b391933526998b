// sns-validator at a web server and at a consumer of a queue, as docs/topics.md shows it: the server has TLS under a name.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import {
  ConfirmSubscriptionCommand,
  CreateTopicCommand,
  PublishCommand,
  SNSClient,
  SubscribeCommand,
} from "@aws-sdk/client-sns";
import { CreateQueueCommand, GetQueueAttributesCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import MessageValidator from "sns-validator";

const endpoint = process.env.TLS_ENDPOINT;
const sns = new SNSClient({ endpoint, region: "us-east-1" });
const sqs = new SQSClient({ endpoint, region: "us-east-1" });
const validator = new MessageValidator(/^localhost(:[0-9]+)?$/);
const validate = (text) => new Promise((resolve, reject) =>
  validator.validate(JSON.parse(text), (error, message) => (error ? reject(error) : resolve(message))));

// What was posted and not taken yet, and who waits for it.
const posted = [];
let taken = () => {};
const next = async () => {
  while (posted.length === 0) await new Promise((resolve) => { taken = resolve; });
  return posted.shift();
};
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => { body += chunk; });
  request.on("end", () => {
    response.end();
    posted.push(body);
    taken();
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

for (const SignatureVersion of ["1", "2"]) {
  const run = `validated-${SignatureVersion}-${Date.now()}`;
  const { TopicArn } = await sns.send(new CreateTopicCommand({ Name: run, Attributes: { SignatureVersion } }));
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: run }));
  const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["QueueArn"] }));
  await sns.send(new SubscribeCommand({ TopicArn, Protocol: "sqs", Endpoint: Attributes.QueueArn }));
  await sns.send(new SubscribeCommand({ TopicArn, Protocol: "http", Endpoint: `http://127.0.0.1:${server.address().port}/` }));
  const confirmation = await validate(await next());
  assert.equal(confirmation.Type, "SubscriptionConfirmation");
  await sns.send(new ConfirmSubscriptionCommand({ TopicArn, Token: confirmation.Token }));
  await sns.send(new PublishCommand({ TopicArn, Message: "text with ø\nand lines", Subject: "a subject" }));
  const notification = await next();
  assert.equal((await validate(notification)).SignatureVersion, SignatureVersion);
  await assert.rejects(validate(notification.replace("lines", "lies")), /signature is invalid/);
  const { Messages } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 10 }));
  assert.equal((await validate(Messages[0].Body)).Message, "text with ø\nand lines");
}
console.log("sns_validator: confirmations, posts and envelopes in queues of both signature versions; changed ones are refused");
process.exit(0);
