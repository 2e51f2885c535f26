/**
 * The compiled executable as users have it: an empty environment, a working folder that it cannot write to, a user who
 * is not root, and only the data folder is its own.
 */

import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { apiVersionsRequest, apiVersionsResponse } from "../../lib/protocol/messages/api_versions.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { buildBatch, recordsOf } from "../../lib/records/record.ts";
import { compileExecutable } from "../support/executable.ts";
import { RawClient } from "../support/raw_client.ts";

const MAX_BYTES = 130_000_000;
/** A user without rights of any kind, as in the image; used where the tests run as root, whom no folder is read-only to. */
const NOBODY = 65534;

const executable = await compileExecutable();
const asRoot = Deno.uid() === 0;
const options = { ignore: executable === null };

Deno.test.afterAll(async () => {
  if (executable !== null) await executable.remove();
});

/** Starts `kaas ARGS` with nothing in its environment, in the executable's own folder. */
function spawn(...args: string[]): Deno.ChildProcess {
  const { path, folder } = executable!;
  const asNobody = ["setpriv", "--reuid", String(NOBODY), "--regid", String(NOBODY), "--clear-groups", path];
  const [program, ...prefix] = asRoot ? asNobody : [path];
  return new Deno.Command(program, {
    args: [...prefix, ...args],
    cwd: folder,
    clearEnv: true,
    env: asRoot ? { PATH: "/usr/bin:/bin" } : {},
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

async function run(...args: string[]) {
  const { code, stdout, stderr } = await spawn(...args).output();
  const text = new TextDecoder();
  return { code, out: text.decode(stdout), err: text.decode(stderr) };
}

/** A broker whose start line was read. */
class Served {
  private constructor(
    readonly child: Deno.ChildProcess,
    readonly start: Record<string, unknown>,
    readonly lines: AsyncIterator<string>,
  ) {}

  static async start(data: string): Promise<Served> {
    const child = spawn("broker", "--data", data, "--listen", "127.0.0.1:0");
    const lines = linesOf(child.stdout);
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the broker ended: ${await new Response(child.stderr).text()}`);
      const entry = JSON.parse(value);
      if (entry.listeners !== undefined) return new Served(child, entry, lines);
    }
  }

  get port(): number {
    return Number(/:(\d+)$/.exec(String(this.start.listeners))![1]);
  }

  /** SIGTERM; resolves to the exit code and the last log line. */
  async stop(): Promise<{ code: number; last: Record<string, unknown> }> {
    this.child.kill("SIGTERM");
    let last = "{}";
    for (let line = await this.lines.next(); !line.done; line = await this.lines.next()) last = line.value;
    await this.child.stderr.cancel();
    return { code: (await this.child.status).code, last: JSON.parse(last) };
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

async function withDataFolder(test: (data: string) => Promise<void>): Promise<void> {
  const data = await Deno.makeTempDir({ prefix: "kaas-data-" });
  try {
    if (asRoot) await Deno.chown(data, NOBODY, NOBODY);
    await test(data);
  } finally {
    await Deno.remove(data, { recursive: true });
  }
}

async function produce(client: RawClient, topic: string, value: string): Promise<number> {
  const records = buildBatch({ timestamp: 1_700_000_000_000, records: [{ key: "k", value }] });
  const reply = await client.call(produceRequest, produceResponse, 9, {
    acks: -1,
    timeoutMs: 10_000,
    topicData: [{ name: topic, topicId: ZERO_UUID, partitionData: [{ index: 0, records }] }],
  });
  const [partition] = reply.responses[0].partitionResponses;
  assert.equal(partition.errorCode, 0);
  return partition.baseOffset;
}

async function fetchValues(client: RawClient, topic: string): Promise<string[]> {
  const reply = await client.call(fetchRequest, fetchResponse, 11, {
    maxWaitMs: 5000,
    minBytes: 1,
    forgottenTopicsData: [],
    topics: [{ topic, topicId: ZERO_UUID, partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1 << 20 }] }],
  });
  const [partition] = reply.responses[0].partitions;
  assert.equal(partition.errorCode, 0);
  const values: string[] = [];
  for (let at = 0, bytes = partition.records ?? new Uint8Array(); at < bytes.length;) {
    const size = 12 + new DataView(bytes.buffer, bytes.byteOffset).getInt32(at + 8);
    const records = recordsOf(bytes.subarray(at, at + size));
    assert.ok(Array.isArray(records));
    values.push(...records.map((record) => new TextDecoder().decode(record.value!)));
    at += size;
  }
  return values;
}

Deno.test("The executable knows its version and explains itself", options, async () => {
  assert.deepEqual(await run("--version"), { code: 0, out: `${manifest.version}\n`, err: "" });
  assert.match((await run("broker", "--help")).out, /^Usage: kaas broker /);
});

Deno.test("The executable says what is wrong with a command line and exits with 2", options, async () => {
  const { code, out, err } = await run("broker", "--set", "log.retention.mss=1");
  assert.equal(code, 2);
  assert.equal(out, "");
  assert.match(err, /did you mean log\.retention\.ms\?/);
});

Deno.test(
  "The executable serves produce and consume, is inspected meanwhile, and keeps everything over SIGTERM",
  options,
  async () => {
    await withDataFolder(async (data) => {
      const first = await Served.start(data);
      assert.equal(first.start.version, manifest.version);
      assert.equal(first.start.topics, 0);
      {
        using client = await RawClient.connect(first.port);
        const versions = await client.call(apiVersionsRequest, apiVersionsResponse, 3, {
          clientSoftwareName: "test",
          clientSoftwareVersion: "1",
        });
        assert.equal(versions.errorCode, 0);
        const created = await client.call(createTopicsRequest, createTopicsResponse, 5, {
          topics: [{ name: "orders", numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
          timeoutMs: 10_000,
        });
        assert.equal(created.topics[0].errorCode, 0);
        assert.equal(await produce(client, "orders", "one"), 0);
        assert.deepEqual(await fetchValues(client, "orders"), ["one"]);

        const { code, out, err } = await run(
          "admin",
          "inspect-partition",
          "orders/0",
          "--data",
          data,
          "--verify",
          "--json",
        );
        assert.equal(err, "");
        assert.equal(code, 0);
        const { segments, verification } = JSON.parse(out);
        assert.equal(segments.at(-1).state, "active");
        assert.deepEqual([verification.records, verification.logEndOffset, verification.damages], [1, 1, []]);
        assert.equal(await produce(client, "orders", "two"), 1);
      }
      const { code, last } = await first.stop();
      assert.deepEqual([code, last.message], [0, "stopped"]);

      const second = await Served.start(data);
      assert.deepEqual([second.start.topics, second.start.partitions], [1, 1]);
      {
        using client = await RawClient.connect(second.port);
        assert.deepEqual(await fetchValues(client, "orders"), ["one", "two"]);
      }
      assert.equal((await second.stop()).code, 0);
    });
  },
);

Deno.test("A broker whose address is taken exits with 1 and says which", options, async () => {
  await withDataFolder(async (data) => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { code, err } = await run("broker", "--data", data, "--listen", `127.0.0.1:${taken.addr.port}`);
    assert.equal(code, 1);
    assert.match(err, new RegExp(`^kaas broker: cannot start: .*${taken.addr.port}`));
  });
});

Deno.test({
  name: "A read-only data folder is refused in one line",
  ignore: executable === null,
  fn: () =>
    withDataFolder(async (data) => {
      await Deno.chmod(data, 0o555);
      try {
        const { code, err } = await run("broker", "--data", data, "--listen", "127.0.0.1:0");
        assert.equal(code, 1);
        assert.match(err, /^kaas broker: cannot start: .*permission.*\n$/);
        assert.deepEqual([...Deno.readDirSync(data)], []);
      } finally {
        await Deno.chmod(data, 0o755);
      }
    }),
});

Deno.test(
  "The executable holds the packages that kaas imports, no others, and stays below its size",
  options,
  async () => {
    const { path, compilerOutput } = executable!;
    // Packages are shown as `name/1.2.3/*` or, with a scope, `@scope/name/*`; folders of kaas itself as `name/*`.
    const packages = compilerOutput.matchAll(/[─ ](@[a-z-]+\/[a-z-]+|[a-z0-9-]+(?=\/\d))[^ ]*\/\* \(/g);
    const embedded = new Set([...packages].map(([, name]) => name));
    const declared = Object.keys(manifest.imports).filter((name) => name !== "hash-wasm");
    assert.deepEqual([...embedded].sort(), declared.sort());
    const { size } = await Deno.stat(path);
    console.log(`size of the executable: ${(size / 1e6).toFixed(1)} MB`);
    assert.ok(size < MAX_BYTES, `${size} bytes`);
  },
);
