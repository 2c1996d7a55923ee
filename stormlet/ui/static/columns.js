// The columns of tables: as Storm's UI has them, each with its meaning.

import { count, counted, percent, rate, time } from "./format.js";

const samples = (row) => row.complete_samples ? `of ${counted(row.complete_samples, "sample")}` : null;

export const COLUMNS = {
  id: { title: "Component", help: "Its name; the sign says how it is. A bolt stands below what it takes from." },
  tasks: { title: "Tasks", help: "Instances that work side by side: its parallelism.", show: count },
  rate: { title: "Rate", help: "Of a spout, emits in a second; of a bolt, executed tuples; of __acker, control messages. Mean of the window.", show: rate },
  emitted: { title: "Emitted", help: "Calls of emit, or values yielded or returned, in the window.", show: count },
  transferred: { title: "Transferred", help: "Tuples delivered in the window: one emit may reach several tasks, or none.", show: count },
  shares: { title: "Time", help: "What its tasks do with their time, which adds up to 100 %: executing, awaiting, blocked by a full queue below, held back by max_spout_pending, idle. A bolt that is awaiting nearly all the time needs a higher concurrency; one that is executing needs less work or another process." },
  capacity: { title: "Capacity", help: "Storm's capacity: the part of the time in which the busiest task has an input in hand. Near 100 %, raise its concurrency or parallelism.", show: percent },
  fill: { title: "Queue", help: "How full the fullest queue of its tasks is. A full one holds up everything above it.", show: percent },
  execute_mean: { title: "Execute", help: "Storm's execute latency: the mean time of one execute, awaits included, waits for room not.", show: time },
  execute_p99: { title: "p99", help: "99 of 100 executes took no longer; at most 6 % too high.", show: time },
  executed: { title: "Executed", help: "Inputs that a bolt has executed in the window; control messages of __acker.", show: count },
  process_mean: { title: "Process", help: "Storm's process latency: the mean time from execute to the ack of the input.", show: time },
  complete_mean: { title: "Complete", help: "Storm's complete latency: the mean time from the emit of a message to its ack, when its whole tree is done. It is of samples: each task measures one message at a time. A cell has their number.", show: time, more: samples },
  complete_p99: { title: "p99", help: "99 of 100 messages that were measured, one at a time in each task, were acked within this time; at most 6 % too high. A cell has their number.", show: time, more: samples },
  acked: { title: "Acked", help: "Messages of a spout whose trees are done; inputs that a bolt has acked; trees of __acker.", show: count },
  failed: { title: "Failed", help: "Attempts of a spout's messages that failed; inputs that a bolt has failed. A failed message is emitted again as often as max_attempts says.", show: count },
  dead_letters: { title: "Given up", help: "Messages that became dead letters.", show: count },
  pending: { title: "Pending", help: "Now: messages of a spout without an outcome; inputs that a bolt has queued, in hand or held; open trees of __acker.", show: count },
  lag: { title: "Lag", help: "Messages that the broker has and that are not settled.", show: count },
  restarts: { title: "Restarts", help: "Restarts of its tasks in the window.", show: count },
};

export const SPOUT = ["id", "tasks", "rate", "emitted", "transferred", "shares", "complete_mean", "complete_p99", "acked", "failed", "dead_letters", "pending", "lag"];
export const BOLT = ["id", "tasks", "rate", "emitted", "transferred", "shares", "capacity", "fill", "execute_mean", "execute_p99", "executed", "process_mean", "acked", "failed", "pending"];
