/**
 * The rules of the code base as a whole: which room may import which, what may touch the machine, and how long a file
 * may be. The tables here are the one place where these rules stand.
 */

import assert from "node:assert/strict";
import { codeOnly, importsOf, readSource, sourceFiles } from "../support/source_files.ts";

/** What each room of lib/ may import besides itself. */
const rooms: Record<string, readonly string[]> = {
  "partition_state": [],
  "errors": [],
  "clock": [],
  "disk": ["errors", "partition_state", "clock"],
  "records": ["errors"],
  "protocol": ["errors"],
  "observability": ["errors", "clock"],
  "storage": ["disk", "records", "partition_state", "clock", "errors"],
  "cluster": ["disk", "partition_state", "clock", "errors"],
  "security": ["disk", "records", "protocol", "clock", "errors"],
  "journal": ["disk", "records", "partition_state", "clock", "errors"],
  "groups": ["journal", "records", "clock", "errors"],
  "transactions": ["journal", "disk", "records", "protocol", "clock", "errors"],
  "kubernetes": ["cluster", "disk", "clock", "errors"],
  "broker": [
    ...["observability", "storage", "cluster", "security", "groups", "transactions"],
    ...["journal", "disk", "records", "protocol", "partition_state", "clock", "errors"],
  ],
};

/** The packages that may be imported, and by whom. */
const packages: Record<string, readonly string[]> = {
  "@commander-js/extra-typings": ["cli"],
  "yaml": ["cli"],
  "zod": ["lib/broker", "lib/cluster", "lib/groups", "lib/storage", "lib/security", "lib/transactions"],
  "snappyjs": ["lib/records"],
  "node:zlib": ["lib/records"],
  "node:fs/promises": ["lib/disk"],
};

/** Packages of deno.json that only tests import; they are not in the executable. */
const testPackages = ["hash-wasm"];

/** Where the machine, the time and chance may be asked directly; everything else is handed a Disk, a Clock, a Random. */
const machineFiles = [
  /^lib\/disk\//,
  /^lib\/clock\.ts$/,
  /^lib\/broker\/(connection|listener)[a-z_]*\.ts$/,
  /^lib\/cluster\/http\.ts$/,
  /^lib\/kubernetes\//,
  /^lib\/observability\//,
  /^cli\//,
];
const machineUse =
  /\bDeno\.|\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.|\b(set|clear)(Timeout|Interval)\b|\brandomUUID\b|\bgetRandomValues\b/;

const MAX_LINES = 700;

const code = ["lib", "cli"].flatMap(sourceFiles);

function roomOf(path: string): string {
  const [top, room] = path.split("/");
  return top === "lib" ? room.replace(/\.ts$/, "") : top;
}

Deno.test("Imports between rooms follow the table", () => {
  const wrong: string[] = [];
  for (const path of code) {
    const room = roomOf(path);
    assert.ok(room === "cli" || rooms[room] !== undefined, `${path}: lib/${room} is in no row of the table`);
    for (const { target, isFile } of importsOf(path, readSource(path))) {
      if (!isFile) continue;
      const other = roomOf(target);
      const allowed = other === room ||
        (room === "cli" ? target.startsWith("lib/") || target === "deno.json" : rooms[room].includes(other));
      if (!allowed) wrong.push(`${path} imports ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("The table of rooms has no cycle", () => {
  const above = new Set<string>();
  const visit = (room: string) => {
    assert.ok(!above.has(room), `${room} reaches itself`);
    above.add(room);
    for (const other of rooms[room]) visit(other);
    above.delete(room);
  };
  for (const room of Object.keys(rooms)) visit(room);
});

Deno.test("No file imports itself through others", () => {
  const imports = new Map(
    code.map((
      path,
    ) => [
      path,
      importsOf(path, readSource(path)).filter((one) => one.isFile && !one.typesOnly).map((one) => one.target),
    ]),
  );
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]) => {
    assert.ok(!above.includes(path), `cycle: ${[...above.slice(above.indexOf(path)), path].join(" → ")}`);
    if (done.has(path)) return;
    for (const target of imports.get(path) ?? []) visit(target, [...above, path]);
    done.add(path);
  };
  for (const path of code) visit(path, []);
});

Deno.test("Packages are imported where the table allows, and each one of deno.json is in it", () => {
  const wrong: string[] = [];
  for (const path of code) {
    for (const { target, isFile } of importsOf(path, readSource(path))) {
      if (!isFile && !packages[target]?.some((folder) => path.startsWith(`${folder}/`))) {
        wrong.push(`${path} imports ${target}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  const declared = Object.keys(JSON.parse(readSource("deno.json")).imports);
  const known = [...Object.keys(packages), ...testPackages, "commander"];
  assert.deepEqual(declared.filter((name) => !known.includes(name)), []);
  const used = [...code, ...sourceFiles("tests")].flatMap((path) =>
    importsOf(path, readSource(path)).map((one) => one.target)
  );
  assert.deepEqual(declared.filter((name) => !used.includes(name) && name !== "commander"), []);
});

Deno.test("Only the edges touch the machine, the time and chance", () => {
  const wrong: string[] = [];
  for (const path of code) {
    if (machineFiles.some((pattern) => pattern.test(path))) continue;
    codeOnly(readSource(path)).split("\n").forEach((line, at) => {
      if (machineUse.test(line)) wrong.push(`${path}:${at + 1}: ${line.trim()}`);
    });
  }
  assert.deepEqual(wrong, []);
});

Deno.test("No file is longer than what one sitting reads", () => {
  const all = ["lib", "cli", "tests", "bench"].flatMap(sourceFiles);
  const long = all.map((path) => [path, readSource(path).split("\n").length] as const).filter(([, lines]) =>
    lines > MAX_LINES
  );
  assert.deepEqual(long, []);
});

Deno.test("Files are named in snake_case and none only passes on what others export", () => {
  for (const path of code) {
    assert.match(path.split("/").at(-1)!, /^[a-z0-9_]+\.ts$/);
    const statements = codeOnly(readSource(path)).split("\n").filter((line) => line.trim() !== "");
    const isBarrel = statements.length > 0 &&
      statements.every((line) => /^export\s+(\*|\{|type)/.test(line) && line.includes("from"));
    assert.ok(!isBarrel, `${path} only passes on what others export`);
  }
});

Deno.test("Nothing is left open in the code", () => {
  const wrong: string[] = [];
  for (const path of [...code, "main.ts"]) {
    readSource(path).split("\n").forEach((line, at) => {
      if (/\b(TODO|FIXME|XXX|HACK)\b/.test(line)) wrong.push(`${path}:${at + 1}: ${line.trim()}`);
    });
  }
  assert.deepEqual(wrong, []);
});

Deno.test("No file names a ticket, a package registry's host or a path of one machine", () => {
  const hosts = ["registry.npm" + "js", "py" + "pi.org", "repo1.ma" + "ven", "proxy.gol" + "ang", "deb.deb" + "ian"];
  const tickets = /\b(KAFKA-\d{2,}|gh #\d+|issues? #?\d+\b)/i;
  const wrong: string[] = [];
  for (const path of [...code, ...["tests", "bench"].flatMap(sourceFiles), "main.ts", "deno.json", "deno.lock"]) {
    readSource(path).split("\n").forEach((line, at) => {
      const named = hosts.some((host) => line.includes(host)) || /(^|[^\w.])\/(root|work|home)\//.test(line);
      if (path !== "tests/unit/layering_test.ts" && (named || tickets.test(line))) {
        wrong.push(`${path}:${at + 1}: ${line.trim()}`);
      }
    });
  }
  assert.deepEqual(wrong, []);
});

Deno.test("The search for code sees through comments, strings and patterns", () => {
  const text =
    "a; // Deno.x\n\"Deno.y\"; 'Deno.z'; /* Deno.\n w */ `Deno.t ${Deno.real(`${1}`)} Deno.u`; f(/Deno.v/); b = {Deno: 1};";
  const found = codeOnly(text);
  assert.equal(found.split("\n").length, text.split("\n").length);
  assert.deepEqual(found.match(/Deno\.\w+/g), ["Deno.real"]);
});
