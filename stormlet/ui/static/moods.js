// The state of a component: a word, a sign and a colour, so that no reader depends on one of them.

export const MOODS = {
  well: { sign: "●", words: "works" },
  idle: { sign: "○", words: "has nothing to do" },
  busy: { sign: "▲", words: "is busy nearly all the time, or its queue is full" },
  blocked: { sign: "◧", words: "waits for room in the queue of another bolt" },
  failing: { sign: "✕", words: "has failed in this window" },
  restarting: { sign: "↻", words: "has died, and is being restarted" },
  lost: { sign: "⚡", words: "has lost its broker" },
};

export const SHARES = {
  executing: "its own code runs",
  awaiting: "its own code awaits something",
  blocked: "it waits for room in a queue below",
  limited: "as many messages are pending as may be",
  idle: "it has nothing to do",
};
