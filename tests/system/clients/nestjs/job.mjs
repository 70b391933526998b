// NestJS with @ssut/nestjs-sqs: handlers of messages and batches, a message that fails once, a delay, the module's own calls.
import assert from "node:assert/strict";
import { all, errors, FIFO, seen, SINGLE, start } from "./app.mjs";

const { application, service } = await start("2");
const bodies = Array.from({ length: 20 }, (_, number) => `message ${number}`);
await service.send(SINGLE, bodies.map((body, number) => ({ id: `${number}`, body, messageAttributes: {
  number: { DataType: "Number", StringValue: `${number}` },
} })));
await service.send(SINGLE, { id: "fails", body: "fails once" });
await service.send(SINGLE, { id: "late", body: "late", delaySeconds: 1 });
await service.send(FIFO, bodies.map((body, number) => ({ id: `${number}`, body, groupId: `group-${number % 3}` })));
await all(SINGLE, 22);
await all(FIFO, 20);
for (const deadline = Date.now() + 60_000; (seen[SINGLE].get("fails once") ?? 0) < 2 && Date.now() < deadline;)
  await new Promise((done) => setTimeout(done, 50));
assert.deepEqual([...seen[SINGLE].keys()].sort(), [...bodies, "fails once", "late"].sort());
assert.deepEqual([...seen[SINGLE].entries()].filter(([, count]) => count > 1), [["fails once", 2]]);
for (const group of [0, 1, 2]) {
  const came = [...seen[FIFO].keys()].filter((body) => Number(body.split(" ")[1]) % 3 === group);
  assert.deepEqual(came, bodies.filter((_, number) => number % 3 === group), "each group is in order");
}
assert.equal((await service.getQueueAttributes(FIFO)).FifoQueue, "true");
await service.purgeQueue(SINGLE);
assert.equal(await service.getProducerQueueSize(SINGLE), 0);
assert.deepEqual(errors, []);
await application.close();
console.log("nestjs: 22 messages and a FIFO queue of 20, one that failed and came again, a delay");
process.exit(0);
