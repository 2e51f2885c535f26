/**
 * Kafka Streams with exactly_once_v2: a stateful aggregation behind a repartition topic, while broker and application are
 * killed again and again. Each record counts once: every group's counts are 1, 2, 3 … in order, and nothing else.
 */

import assert from "node:assert/strict";
import { brokersAreOwned, startBroker, until } from "../support/broker_process.ts";
import { ClientProcess } from "../support/client_process.ts";
import { createTopic } from "../support/client_suite.ts";
import { clientCommand } from "../support/toolchain.ts";

const RECORDS = 100_000;
const GROUPS = 250;
const PARTITIONS = 2;
const committed = { "isolation.level": "read_committed" };

/** The application; it writes to stderr only. */
class Application {
  #child: Deno.ChildProcess;
  readonly #said: string[] = [];

  constructor(private readonly bootstrap: string, private readonly folder: string) {
    this.#child = this.#start();
  }

  #start(): Deno.ChildProcess {
    const [program, ...args] = clientCommand("kafka-streams")!;
    const child = new Deno.Command(program, {
      args: [...args, this.bootstrap, this.folder, String(GROUPS)],
      stdout: "null",
      stderr: "piped",
    }).spawn();
    void this.#listen(child);
    return child;
  }

  async #listen({ stderr }: Deno.ChildProcess): Promise<void> {
    for await (const text of stderr.pipeThrough(new TextDecoderStream())) this.#said.push(text);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
  }

  restart(): void {
    this.#child = this.#start();
  }

  get said(): string {
    return this.#said.join("");
  }
}

Deno.test({
  name: "Kafka Streams: an aggregation is exact though broker and application are killed again and again",
  ignore: !brokersAreOwned || clientCommand("kafka-streams") === null || clientCommand("kafka-clients-4.3") === null,
  sanitizeOps: false,
  sanitizeResources: false,
  fn: async () => {
    const broker = await startBroker();
    const stateFolder = await Deno.makeTempDir({ prefix: "kaas-streams-" });
    const client = ClientProcess.start("kafka-clients-4.3", broker.bootstrap)!;
    let application: Application | null = null;
    try {
      await createTopic(client, "in", PARTITIONS);
      // One partition: the counts of a group are in order there.
      await createTopic(client, "out");
      await client.produce({
        topic: "in",
        generate: { count: RECORDS, prefix: "k", partitions: PARTITIONS },
        lingerMs: 20,
        batchBytes: 100_000,
      });
      const app = application = new Application(broker.bootstrap, stateFolder);
      const stable = async () => {
        const found = client.start<{ offset: number }>("offset", { topic: "out", at: "latest", config: committed });
        return (await found.result).offset;
      };
      for (const [share, victim] of [[0.1, "broker"], [0.3, "application"], [0.5, "broker"], [0.6, "both"]] as const) {
        await until(async () => await stable() >= share * RECORDS, `${share} of the output`, 90_000);
        if (victim !== "application") await broker.kill();
        if (victim !== "broker") await app.kill();
        if (victim !== "application") await broker.restart();
        if (victim !== "broker") app.restart();
      }
      const counts = new Map<string, number>();
      let seen = 0;
      // Markers and aborted records have offsets, too: the end of the log says only that it may be complete.
      for (let end = RECORDS; seen < RECORDS; end++) {
        await until(async () => await stable() >= end, "the rest of the output", 60_000);
        end = await stable();
        const { records } = await client.start<{ records: [number, string][] }>("consume", {
          ...{ topic: "out", from: 0, keysOnly: true, config: committed, untilPosition: end, timeoutMs: 60_000 },
        }).result;
        counts.clear();
        for (const [, key] of records) {
          const [group, count] = key.split("=");
          assert.equal(Number(count), (counts.get(group) ?? 0) + 1, `group ${group}`);
          counts.set(group, Number(count));
        }
        seen = records.length;
      }
      assert.equal(seen, RECORDS);
      assert.equal(counts.size, GROUPS);
      for (const count of counts.values()) assert.equal(count, RECORDS / GROUPS);
    } catch (error) {
      console.error(application?.said.split("\n").slice(-30).join("\n"));
      console.error(broker.logs().split("\n").slice(-20).join("\n"));
      throw error;
    } finally {
      await application?.kill().catch(() => {});
      await client.close();
      await broker.stop();
      await Deno.remove(stateFolder, { recursive: true });
    }
  },
});
