/** Values that one side adds as they come, and the other reads in order. */
export class Queue<T> {
  private readonly values: T[] = [];
  private failure: Error | null = null;
  private wake: (() => void) | null = null;

  push(value: T): void {
    this.values.push(value);
    this.wake?.();
  }

  /** The reader gets this error after the values. */
  fail(error: Error): void {
    this.failure ??= error;
    this.wake?.();
  }

  /** Reads the values until the signal aborts, which is reported like an aborted request. */
  async *until(signal: AbortSignal): AsyncGenerator<T> {
    const onAbort = () => this.wake?.();
    signal.addEventListener("abort", onAbort);
    try {
      for (;;) {
        signal.throwIfAborted();
        const value = this.values.shift();
        if (value !== undefined) yield value;
        else if (this.failure) throw this.failure;
        else {
          await new Promise<void>((resolve) => (this.wake = resolve));
          this.wake = null;
        }
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
