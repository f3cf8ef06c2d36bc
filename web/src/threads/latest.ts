/** Runs tasks one at a time. Of the tasks that are requested while one is running, only the last one runs. */
export class Latest {
  private next: (() => Promise<void>) | null = null;
  private isRunning = false;

  /** Whether no task waits for the running one. */
  get isLast(): boolean {
    return this.next === null;
  }

  run(task: () => Promise<void>): void {
    this.next = task;
    if (!this.isRunning) void this.work();
  }

  private async work(): Promise<void> {
    this.isRunning = true;
    while (this.next) {
      const task = this.next;
      this.next = null;
      await task();
    }
    this.isRunning = false;
  }
}

/** Adds the last word of a query that is still being typed as a prefix. */
export function whileTyping(query: string): string {
  const word = /(?:^|\s)([\p{L}\p{N}]{3,})$/u.exec(query)?.[1];
  const isInPhrase = (query.match(/"/g) ?? []).length % 2 === 1;
  return word && !isInPhrase ? `${query} ${word}*` : query;
}
