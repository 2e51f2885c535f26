/** Whether the broker under test serves an API: kaas has one file for each, Apache Kafka has all. */

import { brokerIsKaas } from "./broker_process.ts";

/** `api` as its file in lib/broker/handlers is named, such as "join_group". */
export function isServed(api: string): boolean {
  if (!brokerIsKaas) return true;
  try {
    return Deno.statSync(new URL(`../../lib/broker/handlers/${api}.ts`, import.meta.url)).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
