import assert from "node:assert/strict";
import manifest from "../../../deno.json" with { type: "json" };
import { run } from "./support.ts";

Deno.test("--version prints the version of the manifest", async () => {
  assert.deepEqual(await run(["--version"]), { code: 0, out: `${manifest.version}\n`, err: "" });
});

Deno.test("Every command prints its help on stdout and is done", async () => {
  const commands = [[], ["broker"], ["controller"], ["admin"], ["admin", "inspect-partition"], [
    "admin",
    "dump-segment",
  ]];
  for (const command of commands) {
    const { code, out, err } = await run([...command, "--help"]);
    assert.equal(code, 0, command.join(" "));
    assert.match(out, new RegExp(`^Usage: kaas${command.map((word) => ` ${word}`).join("")}`));
    assert.equal(err, "");
  }
});

Deno.test("The help of the broker names every flag with its default and its variable", async () => {
  const { out } = await run(["broker", "--help"]);
  for (
    const flag of ["--data", "--listen", "--advertise", "--node-id", "--log-level", "--log-format", "--set", "--config"]
  ) {
    assert.ok(out.includes(`${flag} <`), flag);
  }
  assert.match(out.replace(/\s+/g, " "), /\(default: 127\.0\.0\.1:9092; environment: KAAS_LISTEN\)/);
});

Deno.test("A command line without a command prints the help on stderr and is wrong", async () => {
  for (const args of [[], ["admin"]]) {
    const { code, out, err } = await run(args);
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(err, /^Usage: kaas/);
  }
});

Deno.test("A wrong command line ends with 2, names what is wrong on stderr and says where to read on", async () => {
  const cases: [string[], RegExp][] = [
    [["brokr"], /^kaas: unknown command 'brokr', did you mean broker\?\nTry 'kaas --help'\.\n$/],
    [
      ["broker", "--dat", "x"],
      /^kaas broker: unknown option '--dat', did you mean --data\?\nTry 'kaas broker --help'\.\n$/,
    ],
    [["broker", "--data"], /^kaas broker: option '--data <DIR>' argument missing\n/],
    [["broker", "--message.max.bytes=1"], /a setting is given as --set message\.max\.bytes=VALUE\n/],
    [["broker", "--log-retention-mss", "1"], /a setting is given as --set log\.retention\.ms=VALUE\n/],
    [["broker", "extra"], /^kaas broker: too many arguments/],
    [["broker", "--listen", "9092"], /^kaas broker: --listen: "9092" is not accepted, expected \[NAME=\]HOST:PORT/],
    [["broker", "--data", "a", "--data", "b"], /^kaas broker: --data: data has 2 values, expected one DIR\n/],
    [["broker", "--config", "/none.yaml"], /^kaas broker: --config: cannot read \/none\.yaml: /],
    [["admin", "inspect-partition"], /^kaas admin inspect-partition: missing required argument 'PARTITION'\n/],
    [["admin", "inspect-partition", "orders", "--data", "/d"], /"orders" is not accepted, expected TOPIC\/PARTITION/],
  ];
  for (const [args, expected] of cases) {
    const { code, out, err } = await run(args);
    assert.match(err, expected, args.join(" "));
    assert.equal(code, 2, args.join(" "));
    assert.equal(out, "");
  }
});

Deno.test("The file of settings can be named in the environment", async () => {
  const { code, err } = await run(["broker"], {
    environment: { KAAS_CONFIG: "k.yaml" },
    readTextFile: (path) => Promise.resolve(path === "k.yaml" ? "num.partitions: 0" : ""),
  });
  assert.equal(code, 2);
  assert.match(err, /^kaas broker: k\.yaml:1: num\.partitions: "0" is not accepted, expected at least 1\n/);
});
