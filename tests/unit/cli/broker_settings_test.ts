import assert from "node:assert/strict";
import { isSettingVariable, resolveSettings, type SettingPlaces } from "../../../cli/broker_settings.ts";
import { readConfigFile } from "../../../cli/config_file.ts";

type Given = { [K in keyof SettingPlaces]?: SettingPlaces[K] } & { yaml?: string };

function resolve({ yaml, ...places }: Given) {
  const file = yaml === undefined ? null : readConfigFile("kaas.yaml", yaml);
  return resolveSettings({ flags: {}, set: [], environment: {}, file, ...places });
}

function settingsOf(given: Given) {
  const settings = resolve(given);
  if ("problems" in settings) throw new Error(settings.problems.join("\n"));
  return settings;
}

function problemsOf(given: Given): string[] {
  const settings = resolve(given);
  assert.ok("problems" in settings, "expected problems, there were none");
  return settings.problems;
}

Deno.test("With nothing given a broker listens on the loopback address and keeps its data in ./data", () => {
  const { config, dataFolder, logLevel, logFormat } = settingsOf({});
  assert.deepEqual(config.get("listeners"), ["PLAINTEXT://127.0.0.1:9092"]);
  assert.equal(dataFolder, "data");
  assert.equal(logLevel, "info");
  assert.equal(logFormat, null);
});

Deno.test("A flag is stronger than the environment, that than the file, that than the default", () => {
  const name = "message.max.bytes";
  const yaml = `${name}: 3\nlog.retention.ms: 30\nnum.partitions: 4`;
  const environment = { KAAS_MESSAGE_MAX_BYTES: "2", KAAS_LOG_RETENTION_MS: "20" };
  const { config } = settingsOf({ set: [`${name}=1`], environment, yaml });
  assert.equal(config.get(name), 1);
  assert.equal(config.get("log.retention.ms"), 20);
  assert.equal(config.get("num.partitions"), 4);
  assert.equal(config.get("default.replication.factor"), 1);
});

Deno.test("Precedence holds between different names of one setting", () => {
  assert.equal(settingsOf({ environment: { KAAS_LOG_DIR: "/env" }, yaml: "log.dirs: /file" }).dataFolder, "/env");
  assert.equal(settingsOf({ flags: { data: ["/flag"] }, environment: { KAAS_LOG_DIRS: "/env" } }).dataFolder, "/flag");
  assert.equal(settingsOf({ yaml: "log.dirs: /dirs\nlog.dir: /dir" }).dataFolder, "/dirs");
  assert.equal(settingsOf({ yaml: "data: /data" }).dataFolder, "/data");
  assert.equal(settingsOf({ set: ["broker.id=7"], yaml: "node.id: 3" }).config.get("node.id"), 7);
  assert.equal(settingsOf({ set: ["broker.id=-1"], yaml: "node.id: 3" }).config.get("node.id"), 3);
});

Deno.test("A file takes flat, nested and dashed names alike", () => {
  for (const yaml of ["log.retention.ms: 1000", "log:\n  retention: {ms: 1000}", "log-retention-ms: '1000'"]) {
    assert.equal(settingsOf({ yaml }).config.get("log.retention.ms"), 1000, yaml);
  }
  const yaml = "log: {level: warn, format: json, dirs: /d}\nlisten: [A=127.0.0.1:1, B=127.0.0.1:2]\n" +
    "advertise: A=a.example:1,B=b.example:2\nnode-id: 5\nlog.cleanup.policy: [compact, delete]";
  const { config, logLevel, logFormat, dataFolder } = settingsOf({ yaml });
  assert.deepEqual(config.get("listeners"), ["A://127.0.0.1:1", "B://127.0.0.1:2"]);
  assert.deepEqual(config.get("advertised.listeners"), ["A://a.example:1", "B://b.example:2"]);
  assert.deepEqual(config.get("log.cleanup.policy"), ["compact", "delete"]);
  assert.deepEqual([config.get("node.id"), logLevel, logFormat, dataFolder], [5, "warn", "json", "/d"]);
});

Deno.test("Kafka's largest long stands in a file as itself", () => {
  const { config } = settingsOf({ yaml: "log.retention.bytes: 9223372036854775807" });
  assert.equal(config.text("log.retention.bytes"), "9223372036854775807");
});

Deno.test("Listeners are given with and without names, and an IPv6 address in brackets", () => {
  const flags = { listen: ["[::1]:0", "OUT=0.0.0.0:9093"], advertise: ["OUT=kaas.example:19093"] };
  const { config } = settingsOf({ flags });
  assert.deepEqual(config.get("listeners"), ["PLAINTEXT://[::1]:0", "OUT://0.0.0.0:9093"]);
  assert.deepEqual(settingsOf({ environment: { KAAS_LISTEN: "A=:1,B=:2" } }).config.get("listeners"), [
    "A://:1",
    "B://:2",
  ]);
});

Deno.test("A wrong value is named with its place, the value met and the value wanted", () => {
  const cases: [Given, RegExp][] = [
    [{ flags: { listen: ["localhost"] } }, /^--listen: "localhost" is not accepted, expected \[NAME=\]HOST:PORT/],
    [{ flags: { listen: ["a:70000"] } }, /^--listen: "a:70000" is not accepted/],
    [{ flags: { "node-id": ["x"] } }, /^--node-id: "x" is not accepted, expected a whole number/],
    [
      { flags: { "log-level": ["loud"] } },
      /^--log-level: "loud" is not accepted, expected one of debug, info, warn, error/,
    ],
    [{ set: ["message.max.bytes=x"] }, /^--set message\.max\.bytes: "x" is not accepted, expected a value of type int/],
    [{ set: ["message.max.bytes"] }, /^--set message\.max\.bytes: expected NAME=VALUE/],
    [
      { environment: { KAAS_LOG_ROLL_MS: "0" } },
      /^KAAS_LOG_ROLL_MS: log\.roll\.ms: "0" is not accepted, expected at least 1/,
    ],
    [
      { yaml: "\n\nlog:\n  roll:\n    ms: 0" },
      /^kaas\.yaml:5: log\.roll\.ms: "0" is not accepted, expected at least 1/,
    ],
    [{ yaml: "log.roll.ms: [1, 2]" }, /^kaas\.yaml:1: log\.roll\.ms: "1,2" is not accepted/],
    [{ yaml: "data: [a, b]" }, /^kaas\.yaml:1: data has 2 values, expected one DIR/],
    [{ yaml: "log.dirs: a,b" }, /^kaas\.yaml:1: 2 data folders are named, expected one/],
    [
      { flags: { advertise: ["X=h:1"] } },
      /^--advertise: advertised\.listeners: no listener is named X, expected PLAINTEXT/,
    ],
    [{ flags: { listen: ["a:1", "b:2"] } }, /^--listen: listeners: PLAINTEXT is there twice/],
    [{ yaml: "listeners: SSL://:9093" }, /^kaas\.yaml:1: listeners: SSL asks for SSL .* only PLAINTEXT is served/],
  ];
  for (const [given, expected] of cases) assert.match(problemsOf(given).join("\n"), expected);
});

Deno.test("An unknown name is an error that names the nearest known one, in the form of its place", () => {
  assert.match(
    problemsOf({ set: ["log.retention.mss=1"] })[0],
    /^--set log\.retention\.mss: unknown setting, did you mean log\.retention\.ms\?/,
  );
  assert.match(
    problemsOf({ environment: { KAAS_LOG_RETENTON_MS: "1" } })[0],
    /^KAAS_LOG_RETENTON_MS: .*did you mean KAAS_LOG_RETENTION_MS\?/,
  );
  assert.match(
    problemsOf({ yaml: "a: 1\nmesage.max.bytes: 1" })[1],
    /^kaas\.yaml:2: mesage\.max\.bytes: .*did you mean message\.max\.bytes\?/,
  );
  assert.match(problemsOf({ yaml: "lissten: x:1" })[0], /did you mean listen\?/);
  assert.match(problemsOf({ set: ["zookeeper.connect=x"] })[0], /unknown setting: kaas does not have /);
});

Deno.test("All problems of all places are reported together", () => {
  const problems = problemsOf({
    set: ["a=1", "log.roll.ms=x"],
    environment: { KAAS_NOPE: "1" },
    yaml: "num.partitions: 0",
  });
  assert.equal(problems.length, 4);
});

Deno.test("A weaker place must be right even where a stronger one hides it", () => {
  assert.match(problemsOf({ set: ["num.partitions=2"], yaml: "num.partitions: none" })[0], /^kaas\.yaml:1/);
});

Deno.test("A setting that stands twice in one place is an error that names both", () => {
  assert.match(
    problemsOf({ yaml: "log.roll.ms: 1\nlog: {roll: {ms: 2}}" })[0],
    /^kaas\.yaml:2: log\.roll\.ms is given already by kaas\.yaml:1/,
  );
  assert.match(problemsOf({ yaml: "log.roll.ms: 1\nlog.roll.ms: 2" })[0], /^kaas\.yaml:2: /);
  assert.match(
    problemsOf({ flags: { data: ["/a"] }, set: ["log.dirs=/b"] })[0],
    /^--set log\.dirs: log\.dirs is given already by --data/,
  );
});

Deno.test("What is no tree of settings is refused with its line", () => {
  assert.match(problemsOf({ yaml: "- a\n- b" })[0], /^kaas\.yaml:1: expected settings as NAME: VALUE/);
  assert.match(problemsOf({ yaml: "a: {b: 1" })[0], /^kaas\.yaml:1: /);
  assert.match(problemsOf({ yaml: "num.partitions:" })[0], /^kaas\.yaml:1: num\.partitions has no value here/);
  assert.match(
    problemsOf({ yaml: "num.partitions: [1, {a: 1}]" })[0],
    /^kaas\.yaml:1: num\.partitions has no value here/,
  );
  for (const yaml of ["", "# nothing\n", "{}\n", "---\n"]) settingsOf({ yaml });
});

Deno.test("Empty variables, and those that are addresses of Kubernetes services, are not settings", () => {
  settingsOf({
    environment: {
      KAAS_NUM_PARTITIONS: "",
      KAAS_SERVICE_HOST: "10.0.0.1",
      KAAS_SERVICE_PORT_KAFKA: "9092",
      KAAS_PORT: "tcp://10.0.0.1:9092",
      KAAS_PORT_9092_TCP_ADDR: "10.0.0.1",
      KAAS_BROKER_SERVICE_HOST: "10.0.0.1",
      KAAS_BROKER_PORT_9092_TCP: "tcp://10.0.0.1:9092",
      KAAS_CONFIG: "kaas.yaml",
      PATH: "/bin",
    },
  });
  assert.equal(isSettingVariable("KAAS_LISTENERS"), true);
});
