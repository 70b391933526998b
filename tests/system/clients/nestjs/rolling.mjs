// NestJS with @ssut/nestjs-sqs while the members of the cluster restart: no error, and each message comes once.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { all, errors, FIFO, pause, seen, SINGLE, start } from "./app.mjs";

const EACH_MS = 50;
const { service } = await start("30");
writeFileSync(`${process.env.WORK}/begun`, "");
const began = Date.now();
let sent = 0;
while (!existsSync(`${process.env.WORK}/over`)) {
  const body = `message ${sent}`;
  await service.send(SINGLE, { id: `${sent}`, body }).catch((error) => errors.push(error));
  await service.send(FIFO, { id: `${sent}`, body, groupId: `group-${sent % 3}` }).catch((error) => errors.push(error));
  sent += 1;
  await pause(Math.max(0, began + sent * EACH_MS - Date.now())); // the pace of a real program
}
for (const name of [SINGLE, FIFO]) {
  await all(name, sent);
  assert.equal(seen[name].size, sent, "all have come");
  assert.deepEqual([...seen[name]].filter(([, count]) => count > 1), []);
}
assert.deepEqual(errors, []);
console.log(`nestjs: ${sent} messages through each of two queues, each came once, no error`);
process.exit(0);
