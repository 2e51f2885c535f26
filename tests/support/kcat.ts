/** kcat as a process: what it prints, and records read through it. */

import type { ReadRecord } from "./client_process.ts";
import { clientCommand } from "./toolchain.ts";

export interface KcatOutput {
  readonly success: boolean;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/** Runs kcat to its end, with `input` as its stdin. */
export async function kcat(bootstrap: string, args: readonly string[], input?: Uint8Array): Promise<KcatOutput> {
  const [program] = clientCommand("kcat")!;
  const child = new Deno.Command(program, {
    // A broker that was just restarted is not waited for ten seconds.
    args: ["-b", bootstrap, "-X", "reconnect.backoff.max.ms=500", ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  if (input) await writer.write(input);
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  return { success, stdout, stderr: new TextDecoder().decode(stderr) };
}

/** Reads partition 0 from its beginning; headers, which kcat prints as text, are left out. */
export async function readWithKcat(bootstrap: string, topic: string, count: number): Promise<ReadRecord[]> {
  // Lengths first, since keys and values are any bytes; -1 stands for null.
  const format = "%o %T %K %S\\n%k%s\\n";
  const output = await kcat(bootstrap, [
    ...["-C", "-q", "-t", topic, "-p", "0", "-o", "beginning", "-c", String(count), "-D", "", "-f", format],
  ]);
  if (!output.success) throw new Error(`kcat failed: ${output.stderr}`);
  return parseRecords(output.stdout);
}

function parseRecords(bytes: Uint8Array): ReadRecord[] {
  const records: ReadRecord[] = [];
  for (let at = 0; at < bytes.length;) {
    const endOfLine = bytes.indexOf(10, at);
    const line = new TextDecoder().decode(bytes.subarray(at, endOfLine));
    const [offset, timestamp, keyBytes, valueBytes] = line.split(" ").map(Number);
    at = endOfLine + 1;
    const take = (length: number): string | null => {
      if (length < 0) return null;
      at += length;
      return bytes.slice(at - length, at).toBase64();
    };
    const key = take(keyBytes);
    const value = take(valueBytes);
    at++;
    records.push({ offset, timestamp, key, value, headers: [] });
  }
  return records;
}
