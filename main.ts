/**
 * The entry of every kaas process: hands the command line to cli/.
 */

import { startProcess } from "./cli/process.ts";

if (import.meta.main) await startProcess();
