// A session of BullMQ for the benchmark: requests are lines of JSON on standard
// input, each is answered by one on standard output. See remote.go.
'use strict';

const readline = require('node:readline');
const { Queue, Worker } = require('bullmq');

const QUEUE = 'bench';
const BULK_CALLERS = 4;
const BULK_BATCH = 250;
const FILL_CALLERS = 64;
const SLACK_US = 1000; // see slack in load.go
const RETRY_AFTER_MS = 100;
const WARM_UP = 1000; // jobs, so that the machine code is made before anything is measured

let connection, queue, worker, tally;
const padding = 'x'.repeat(16 << 10);

// now is in microseconds of the wall clock, whole.
const now = () => Math.floor((performance.timeOrigin + performance.now()) * 1000);

function parcel(n, due, bytes) {
  const bare = '{"n":,"due":,"pad":""}'.length + String(n).length + String(due).length;
  return { n, due, pad: padding.slice(0, Math.max(bytes - bare, 0)) };
}

function options(load) {
  const opts = { removeOnComplete: true };
  if (load.retry) Object.assign(opts, { attempts: 8, backoff: { type: 'fixed', delay: RETRY_AFTER_MS } });
  if (load.due) {
    // The timestamp is what the delay counts from.
    opts.timestamp = Date.now();
    opts.delay = Math.max(0, Math.round(load.due / 1000) - opts.timestamp);
  }
  return opts;
}

async function enqueue(q, load) {
  const make = (i) => parcel(load.first + i, load.due || now(), load.bytes);
  if (load.every > 0) return pace(q, load);
  if (load.callers === 0) {
    let next = 0;
    return atOnce(BULK_CALLERS, async () => {
      while (next < load.n) {
        const from = next;
        next = Math.min(next + BULK_BATCH, load.n);
        const jobs = [];
        for (let i = from, to = next; i < to; i++) jobs.push({ name: 'parcel', data: make(i), opts: options(load) });
        await q.addBulk(jobs);
      }
    });
  }
  let next = 0;
  return atOnce(load.callers || FILL_CALLERS, async () => {
    while (next < load.n) await q.add('parcel', make(next++), options(load));
  });
}

function atOnce(callers, call) {
  return Promise.all(Array.from({ length: callers }, call));
}

async function pace(q, load) {
  const every = load.every / 1000;
  const start = now();
  const sent = [];
  for (let i = 0; i < load.n; i++) {
    const at = start + i * every;
    while (now() < at) await new Promise((done) => setTimeout(done, Math.floor((at - now()) / 1000)));
    const t = now();
    const due = t - at > SLACK_US ? Math.floor(at) : t;
    sent.push(q.add('parcel', parcel(load.first + i, due, load.bytes), options(load)));
  }
  await Promise.all(sent);
}

function work(name, w) {
  const t = {
    w, runs: 0, alien: 0, ended: 0, acknowledged: 0, goal: Infinity, met: () => {},
    tries: new Uint8Array(w.n), late: w.late ? new Array(w.n).fill(0) : null,
  };
  t.ends = (n) => (w.failEvery > 0 && n % w.failEvery === 0 ? 2 : 1);
  const handler = async (job) => {
    const { n, due } = job.data;
    t.runs++;
    if (!(n >= 0 && n < w.n)) {
      t.alien++;
      return;
    }
    // What was due at an instant is compared with the system's clock, which the
    // one of performance may have left since the process began.
    if (t.late) t.late[n] = (job.opts.delay ? Date.now() * 1000 : now()) - due;
    const tries = ++t.tries[n];
    if (tries < t.ends(n)) throw new Error('bench: the first try of each tenth job fails');
    if (tries === t.ends(n) && ++t.ended >= t.goal) t.met();
  };
  const wk = new Worker(name, handler, { connection, concurrency: w.slots });
  wk.on('completed', () => t.acknowledged++);
  wk.on('error', (err) => console.error(err));
  return [wk, t];
}

function wait(t, n) {
  return new Promise((done) => {
    t.goal = n;
    t.met = done;
    if (t.ended >= n) done();
  });
}

async function warmUp() {
  const name = 'warm-up';
  const q = new Queue(name, { connection });
  await enqueue(q, { first: 0, n: WARM_UP / 2, bytes: 100, callers: 16, every: 0, due: 0 });
  await enqueue(q, { first: WARM_UP / 2, n: WARM_UP / 2, bytes: 100, callers: 0, every: 0, due: 0 });
  const [w, t] = work(name, { slots: 100, n: WARM_UP, failEvery: 0, late: false });
  await wait(t, WARM_UP);
  await w.close();
  await q.obliterate({ force: true });
  await q.close();
}

function outcome(t) {
  const seen = Buffer.alloc(Math.ceil(t.w.n / 8));
  for (let n = 0; n < t.w.n; n++) if (t.tries[n] >= t.ends(n)) seen[n >> 3] |= 1 << (n & 7);
  return { runs: t.runs, alien: t.alien, seen: seen.toString('base64'), late: t.late };
}

async function answer(r) {
  switch (r.op) {
    case 'open': {
      const [host, port] = r.at.redis.split(':');
      connection = { host, port: Number(port) };
      await warmUp();
      queue = new Queue(QUEUE, { connection });
      await queue.waitUntilReady();
      return {};
    }
    case 'enqueue':
      await enqueue(queue, r.load);
      return {};
    case 'work':
      [worker, tally] = work(QUEUE, r.work);
      await worker.waitUntilReady();
      return {};
    case 'wait':
      await wait(tally, r.n);
      return {};
    case 'stop':
      await worker.close();
      return { outcome: outcome(tally) };
    case 'state': {
      const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'failed', 'prioritized', 'paused');
      const left = Object.values(counts).reduce((a, b) => a + b, 0);
      return { state: { done: tally ? tally.acknowledged : 0, left, own: true } };
    }
    case 'close':
      await queue.close();
      return {};
    default:
      throw new Error(`no operation ${r.op}`);
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const r = JSON.parse(line);
    let a;
    try {
      a = await answer(r);
    } catch (err) {
      a = { error: String(err) };
    }
    await new Promise((done) => process.stdout.write(JSON.stringify(a) + '\n', done));
    if (r.op === 'close') process.exit(0); // whatever connection is still closing
  }
}

main();
