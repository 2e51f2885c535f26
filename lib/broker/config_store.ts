/**
 * What was altered while brokers ran, durable in `DATA/__cluster/configs/`: `brokers.json` for all brokers,
 * `broker-<id>.json` for one. Each file is `{"version": 1, "settings": {"log.retention.ms": "1000", …}}` with values as the
 * wire writes them, and is replaced atomically. Unknown settings in a file (of a newer kaas) are kept and have no effect.
 */

import * as z from "zod";
import { readJson, replaceJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import type { Logger } from "../observability/logger.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { type BrokerSettingName, brokerSettings, isBrokerSettingName } from "./config_definitions.ts";
import { formatSetting, parseSetting, type SettingValue } from "./config_definitions_setting.ts";
import { type Refusal, refuse } from "./refusal.ts";

const fileSchema = z.looseObject({ version: z.literal(1), settings: z.record(z.string(), z.string()) });

/** Which brokers an alteration is for. */
export type AlteredLayer = "dynamic-broker" | "dynamic-default";
type Values = ReadonlyMap<BrokerSettingName, SettingValue>;

export interface ConfigStoreOptions {
  readonly disk: Disk;
  /** `DATA/__cluster/configs`; the folder around it is there and durable. */
  readonly folder: string;
  readonly nodeId: number;
  readonly config: BrokerConfig;
  readonly logger: Logger;
}

/** Keeps the altered layers of one broker's configuration in step with their files. */
export class ConfigStore {
  readonly #options: ConfigStoreOptions;
  readonly #foreign = new Map<AlteredLayer, Record<string, string>>();
  #changes: Promise<unknown> = Promise.resolve();
  #folderIsDurable = false;

  private constructor(options: ConfigStoreOptions) {
    this.#options = options;
  }

  /** Reads both files into the configuration. @throws {DiskError} @throws {DamagedFileError} */
  static async load(options: ConfigStoreOptions): Promise<ConfigStore> {
    const store = new ConfigStore(options);
    for (const layer of ["dynamic-default", "dynamic-broker"] as const) await store.#read(layer);
    return store;
  }

  /**
   * Replaces one layer by what `alter` makes of it, one alteration after the other. Resolves when the change is durable
   * and in effect.
   */
  alter(layer: AlteredLayer, alter: (present: Values) => Values | Refusal): Promise<Refusal | null> {
    const change = this.#changes.then(async () => {
      const values = alter(this.#options.config.altered(layer));
      if ("errorCode" in values) return values;
      try {
        await this.#write(layer, values);
      } catch (error) {
        if (!(error instanceof DiskError)) throw error;
        return refuse(ErrorCode.KAFKA_STORAGE_ERROR, `the volume refused: ${error.message}`);
      }
      this.#options.config.replaceAltered(layer, values);
      return null;
    });
    this.#changes = change.catch(() => {});
    return change;
  }

  async #read(layer: AlteredLayer): Promise<void> {
    const file = await readJson(this.#options.disk, this.#path(layer), (json) => fileSchema.parse(json));
    if (file === null) return;
    const values = new Map<BrokerSettingName, SettingValue>();
    const foreign: Record<string, string> = {};
    for (const [name, text] of Object.entries(file.settings)) {
      const parsed = isBrokerSettingName(name) ? parseSetting(brokerSettings[name] as never, text) : null;
      if (isBrokerSettingName(name) && parsed?.ok) values.set(name, parsed.value);
      else foreign[name] = text;
    }
    const unknown = Object.keys(foreign).join(", ");
    if (unknown !== "") this.#options.logger.warn("broker settings without effect", { layer, settings: unknown });
    this.#foreign.set(layer, foreign);
    this.#options.config.replaceAltered(layer, values);
  }

  async #write(layer: AlteredLayer, values: Values): Promise<void> {
    const settings: Record<string, string> = { ...this.#foreign.get(layer) };
    for (const [name, value] of values) settings[name] = formatSetting(brokerSettings[name], value) ?? "";
    await this.#ensureFolder();
    await replaceJson(this.#options.disk, this.#path(layer), { version: 1, settings });
  }

  /** The folder's own name must be as durable as what is put into it. */
  async #ensureFolder(): Promise<void> {
    if (this.#folderIsDurable) return;
    const { disk, folder } = this.#options;
    await disk.makeFolder(folder);
    await disk.syncFolder(folder.slice(0, folder.lastIndexOf("/")));
    this.#folderIsDurable = true;
  }

  #path(layer: AlteredLayer): string {
    const file = layer === "dynamic-default" ? "brokers.json" : `broker-${this.#options.nodeId}.json`;
    return `${this.#options.folder}/${file}`;
  }
}
