/**
 * Where commands write: results to `out`, everything said about them to `err`. Handed in, so that tests can read it.
 */

/** The two outputs of a command. Writing never throws: a reader that went away ends nothing but the reading. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Whether a person reads the output (else a program does). */
  readonly outIsTerminal: boolean;
  readonly errIsTerminal: boolean;
}

/** This process's own stdout and stderr. */
export function processTerminal(): Terminal {
  return {
    out: writer(Deno.stdout),
    err: writer(Deno.stderr),
    outIsTerminal: Deno.stdout.isTerminal(),
    errIsTerminal: Deno.stderr.isTerminal(),
  };
}

function writer(stream: { writeSync(bytes: Uint8Array): number }): (text: string) => void {
  const encoder = new TextEncoder();
  let gone = false;
  return (text) => {
    if (gone) return;
    try {
      for (let bytes = encoder.encode(text); bytes.length > 0;) bytes = bytes.subarray(stream.writeSync(bytes));
    } catch {
      gone = true;
    }
  };
}
